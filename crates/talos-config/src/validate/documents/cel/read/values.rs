//! Values: names, calls, lists and maps.

use super::{Reader, expect_bool, listed, shown};
use crate::validate::documents::cel::functions;
use crate::validate::documents::cel::lex::Token;
use crate::validate::documents::cel::types::Type;

/// Words that cannot be names.
const RESERVED: [&str; 18] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Names of types.
const KINDS: [&str; 11] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
    "optional_type",
];

/// Calls that give a name to each item.
const OVER_ITEMS: [&str; 6] = ["all", "exists", "exists_one", "existsOne", "map", "filter"];

impl<'a> Reader<'a> {
    pub(super) fn primary(&mut self) -> Result<Type, String> {
        let token = self.token().clone();
        self.next += 1;
        self.selected = false;
        match token {
            Token::Int => Ok(Type::Int),
            Token::Uint => Ok(Type::Uint),
            Token::Double => Ok(Type::Double),
            Token::Text => Ok(Type::Text),
            Token::Bytes => Ok(Type::Bytes),
            Token::Name(name) => self.named(name),
            Token::Sign("(") => {
                let found = self.expression()?;
                self.expect(")")?;
                Ok(found)
            }
            Token::Sign("[") => self.list(),
            Token::Sign("{") => self.mapping(),
            Token::Sign(".") => {
                let name = self.name()?;
                self.named(name)
            }
            token => Err(format!("a value is expected instead of {}", shown(&token))),
        }
    }

    fn named(&mut self, name: &'a str) -> Result<Type, String> {
        match name {
            "true" | "false" => return Ok(Type::Bool),
            "null" => return Ok(Type::Null),
            _ if RESERVED.contains(&name) => return Err(format!("`{name}` cannot be a name")),
            _ => {}
        }
        if self.take("(") {
            return self.call(name);
        }
        let local = self.locals.iter().rev().find(|(local, _)| *local == name);
        if let Some((_, found)) = local {
            return Ok(found.clone());
        }
        if let Some(found) = self.variables.of(name) {
            return Ok(found);
        }
        if name == "optional" && self.variables.has_optionals() && self.take(".") {
            let function = self.name()?;
            self.expect("(")?;
            let arguments = self.arguments()?;
            return match (function, &*arguments) {
                ("none", []) => Ok(Type::optional(Type::Any)),
                ("of" | "ofNonZeroValue", [of]) => Ok(Type::optional(of.clone())),
                ("unwrap", [Type::List(_) | Type::Any]) => Ok(Type::list(Type::Any)),
                _ => Err(format!("there is no optional.{function} of these values")),
            };
        }
        if KINDS.contains(&name) {
            return Ok(Type::Kind);
        }
        if matches!(name, "google" | "talos") {
            return self.message();
        }
        Err(format!("there is no {name}"))
    }

    /// Reads a message, or a name in a namespace, of which nothing is known.
    fn message(&mut self) -> Result<Type, String> {
        while self.take(".") {
            self.name()?;
        }
        if self.take("{") {
            while !self.take("}") {
                self.name()?;
                self.expect(":")?;
                self.expression()?;
                if !self.take(",") {
                    self.expect("}")?;
                    break;
                }
            }
        }
        Ok(Type::Any)
    }

    fn arguments(&mut self) -> Result<Vec<Type>, String> {
        let mut arguments = Vec::new();
        if self.take(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if !self.take(",") {
                self.expect(")")?;
                return Ok(arguments);
            }
        }
    }

    fn call(&mut self, name: &str) -> Result<Type, String> {
        let arguments = self.arguments()?;
        let selected = std::mem::take(&mut self.selected);
        if name == "has" {
            return match &*arguments {
                [_] if selected => Ok(Type::Bool),
                _ => Err("has() takes one field".to_owned()),
            };
        }
        if let Some((takes, gives)) = self.variables.function(name) {
            let fits = takes.len() == arguments.len()
                && takes
                    .iter()
                    .zip(&arguments)
                    .all(|(take, argument)| argument.fits(take));
            return match fits {
                true => Ok(gives),
                false => Err(format!("{name} does not take {}", listed(&arguments))),
            };
        }
        functions::call(name, &arguments)
            .ok_or_else(|| format!("there is no function {name} of {}", listed(&arguments)))
    }

    pub(super) fn method(&mut self, of: Type, name: &str) -> Result<Type, String> {
        let over_optional =
            self.variables.has_optionals() && matches!(name, "optMap" | "optFlatMap");
        if OVER_ITEMS.contains(&name) || over_optional {
            return self.over_items(&of, name);
        }
        let arguments = self.arguments()?;
        functions::method(&of, name, &arguments, self.variables.has_optionals())
            .ok_or_else(|| format!("{of} has no function {name} of {}", listed(&arguments)))
    }

    /// Reads `(name, expression)`, where the name stands for each item.
    fn over_items(&mut self, of: &Type, name: &str) -> Result<Type, String> {
        let item = match of {
            Type::Any => Type::Any,
            Type::List(item) | Type::Map(item, _) if !name.starts_with("opt") => (**item).clone(),
            Type::Optional(item) if name.starts_with("opt") => (**item).clone(),
            _ => return Err(format!("{of} has no items for {name}")),
        };
        let local = self.name()?;
        self.expect(",")?;
        self.locals.push((local, item.clone()));
        let body = self.arguments()?;
        self.locals.pop();
        match (name, &*body) {
            ("all" | "exists" | "exists_one" | "existsOne", [test]) => {
                expect_bool(test, name)?;
                Ok(Type::Bool)
            }
            ("filter", [test]) => {
                expect_bool(test, name)?;
                Ok(Type::list(item))
            }
            ("map", [result]) => Ok(Type::list(result.clone())),
            ("map", [test, result]) => {
                expect_bool(test, name)?;
                Ok(Type::list(result.clone()))
            }
            ("optMap", [result]) => Ok(Type::optional(result.clone())),
            ("optFlatMap", [result @ (Type::Optional(_) | Type::Any)]) => Ok(result.clone()),
            _ => Err(format!("{name} does not take {}", listed(&body))),
        }
    }

    fn list(&mut self) -> Result<Type, String> {
        let mut of: Option<Type> = None;
        while !self.take("]") {
            let maybe = self.variables.has_optionals() && self.take("?");
            let item = match (maybe, self.expression()?) {
                (false, item) => item,
                (true, Type::Optional(item)) => *item,
                (true, Type::Any) => Type::Any,
                (true, item) => {
                    return Err(format!(
                        "`?` in a list stands before an optional, not {item}"
                    ));
                }
            };
            of = joined(of, item);
            if !self.take(",") {
                self.expect("]")?;
                break;
            }
        }
        self.selected = false;
        Ok(Type::list(of.unwrap_or(Type::Any)))
    }

    fn mapping(&mut self) -> Result<Type, String> {
        let (mut keys, mut values): (Option<Type>, Option<Type>) = (None, None);
        while !self.take("}") {
            let maybe = self.variables.has_optionals() && self.take("?");
            let key = self.expression()?;
            self.expect(":")?;
            let value = match (maybe, self.expression()?) {
                (false, value) => value,
                (true, Type::Optional(value)) => *value,
                (true, Type::Any) => Type::Any,
                (true, value) => {
                    return Err(format!(
                        "`?` in a map stands before an optional, not {value}"
                    ));
                }
            };
            keys = joined(keys, key);
            values = joined(values, value);
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        self.selected = false;
        Ok(Type::map(
            keys.unwrap_or(Type::Any),
            values.unwrap_or(Type::Any),
        ))
    }
}

/// Returns the type of all items of a list; anything if they differ.
fn joined(all: Option<Type>, item: Type) -> Option<Type> {
    Some(match all {
        None => item,
        Some(all) => all.either(item).unwrap_or(Type::Any),
    })
}
