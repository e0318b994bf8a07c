//! Reads an expression and tells its type.

use super::functions;
use super::lex::{Token, tokens};
use super::types::Type;
use super::variables::{self, Variables};

/// How deep an expression can be nested.
const DEEPEST: usize = 200;

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

/// Reads a whole expression.
pub(super) fn expression(
    text: &str,
    variables: Variables,
    version: &'static str,
) -> Result<Type, String> {
    let mut reader = Reader {
        tokens: tokens(text)?,
        next: 0,
        variables,
        version,
        locals: Vec::new(),
        depth: 0,
        selected: false,
    };
    let found = reader.expression()?;
    match reader.token() {
        Token::End => Ok(found),
        token => Err(format!(
            "{} is not expected after the expression",
            shown(token)
        )),
    }
}

struct Reader<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
    variables: Variables,
    version: &'static str,
    /// Names given to items, innermost last.
    locals: Vec<(&'a str, Type)>,
    depth: usize,
    /// Whether what was read last is a field.
    selected: bool,
}

impl<'a> Reader<'a> {
    fn token(&self) -> &Token<'a> {
        self.tokens.get(self.next).unwrap_or(&Token::End)
    }

    /// Takes a sign, if it is next.
    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.token(), Token::Sign(next) if *next == sign);
        self.next += usize::from(found);
        found
    }

    /// Takes one of some signs, if it is next.
    fn take_of(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        signs.iter().copied().find(|sign| self.take(sign))
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        match self.take(sign) {
            true => Ok(()),
            false => Err(format!(
                "`{sign}` is expected instead of {}",
                shown(self.token())
            )),
        }
    }

    fn name(&mut self) -> Result<&'a str, String> {
        match self.token() {
            Token::Name(name) => {
                let name = *name;
                self.next += 1;
                Ok(name)
            }
            token => Err(format!("a name is expected instead of {}", shown(token))),
        }
    }

    fn expression(&mut self) -> Result<Type, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("the expression is nested too deep".to_owned());
        }
        let condition = self.any_of()?;
        let found = match self.take("?") {
            true => {
                expect_bool(&condition, "before `?`")?;
                let yes = self.any_of()?;
                self.expect(":")?;
                let no = self.expression()?;
                self.selected = false;
                let message = format!("`?:` chooses between a {yes} and a {no}");
                yes.either(no).ok_or(message)?
            }
            false => condition,
        };
        self.depth -= 1;
        Ok(found)
    }

    fn any_of(&mut self) -> Result<Type, String> {
        self.logic("||", Self::all_of)
    }

    fn all_of(&mut self) -> Result<Type, String> {
        self.logic("&&", Self::relation)
    }

    fn logic(
        &mut self,
        sign: &str,
        part: fn(&mut Self) -> Result<Type, String>,
    ) -> Result<Type, String> {
        let mut found = part(self)?;
        while self.take(sign) {
            expect_bool(&found, sign)?;
            expect_bool(&part(self)?, sign)?;
            self.selected = false;
            found = Type::Bool;
        }
        Ok(found)
    }

    fn relation(&mut self) -> Result<Type, String> {
        let mut left = self.sum()?;
        loop {
            let sign = match self.token() {
                Token::Name("in") => {
                    self.next += 1;
                    "in"
                }
                _ => match self.take_of(&["==", "!=", "<=", ">=", "<", ">"]) {
                    Some(sign) => sign,
                    None => return Ok(left),
                },
            };
            let right = self.sum()?;
            left = self.operator(sign, &left, &right)?;
        }
    }

    fn sum(&mut self) -> Result<Type, String> {
        let mut left = self.product()?;
        while let Some(sign) = self.take_of(&["+", "-"]) {
            let right = self.product()?;
            left = self.operator(sign, &left, &right)?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Type, String> {
        let mut left = self.unary()?;
        while let Some(sign) = self.take_of(&["*", "/", "%"]) {
            let right = self.unary()?;
            left = self.operator(sign, &left, &right)?;
        }
        Ok(left)
    }

    fn operator(&mut self, sign: &str, left: &Type, right: &Type) -> Result<Type, String> {
        self.selected = false;
        functions::operator(sign, left, right)
            .ok_or_else(|| format!("`{sign}` does not work on a {left} and a {right}"))
    }

    fn unary(&mut self) -> Result<Type, String> {
        if self.take("!") {
            while self.take("!") {}
            let found = self.member()?;
            expect_bool(&found, "!")?;
            self.selected = false;
            return Ok(Type::Bool);
        }
        if self.take("-") {
            while self.take("-") {}
            if *self.token() == Token::Lowest {
                self.next += 1;
                return Ok(Type::Int);
            }
            let found = self.member()?;
            self.selected = false;
            return match found {
                Type::Int | Type::Double | Type::Any => Ok(found),
                _ => Err(format!("`-` does not work on a {found}")),
            };
        }
        self.member()
    }

    fn member(&mut self) -> Result<Type, String> {
        let mut found = self.primary()?;
        loop {
            if self.take(".") {
                let optional = self.variables.has_optionals() && self.take("?");
                let name = self.name()?;
                if !optional && self.take("(") {
                    found = self.method(found, name)?;
                    self.selected = false;
                } else {
                    found = self.field(&found, name, optional)?;
                    self.selected = true;
                }
            } else if self.take("[") {
                let optional = self.variables.has_optionals() && self.take("?");
                let key = self.expression()?;
                self.expect("]")?;
                found = index(&found, &key, optional)?;
                self.selected = false;
            } else {
                return Ok(found);
            }
        }
    }

    fn field(&self, of: &Type, name: &str, optional: bool) -> Result<Type, String> {
        let found = match of {
            Type::Any => Type::Any,
            Type::Map(_, value) => (**value).clone(),
            Type::Message(message) => variables::field(message, name, self.version)
                .ok_or_else(|| format!("{message} has no field {name}"))?,
            Type::Optional(inner) => {
                return Ok(match self.field(inner, name, false)? {
                    Type::Optional(of) => Type::Optional(of),
                    of => Type::optional(of),
                });
            }
            _ => return Err(format!("a {of} has no field {name}")),
        };
        Ok(if optional {
            Type::optional(found)
        } else {
            found
        })
    }

    fn primary(&mut self) -> Result<Type, String> {
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

    fn method(&mut self, of: Type, name: &str) -> Result<Type, String> {
        let over_optional =
            self.variables.has_optionals() && matches!(name, "optMap" | "optFlatMap");
        if OVER_ITEMS.contains(&name) || over_optional {
            return self.over_items(&of, name);
        }
        let arguments = self.arguments()?;
        functions::method(&of, name, &arguments, self.variables.has_optionals())
            .ok_or_else(|| format!("a {of} has no function {name} of {}", listed(&arguments)))
    }

    /// Reads `(name, expression)`, where the name stands for each item.
    fn over_items(&mut self, of: &Type, name: &str) -> Result<Type, String> {
        let item = match of {
            Type::Any => Type::Any,
            Type::List(item) | Type::Map(item, _) if !name.starts_with("opt") => (**item).clone(),
            Type::Optional(item) if name.starts_with("opt") => (**item).clone(),
            _ => return Err(format!("a {of} has no items for {name}")),
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
                        "`?` in a list stands before an optional, not a {item}"
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
                        "`?` in a map stands before an optional, not a {value}"
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

fn index(of: &Type, key: &Type, optional: bool) -> Result<Type, String> {
    let found = match of {
        Type::Any => Type::Any,
        Type::List(item) if key.fits(&Type::Int) => (**item).clone(),
        Type::Map(known, value) if key.fits(known) => (**value).clone(),
        Type::Optional(inner) => return index(inner, key, true),
        _ => return Err(format!("a {of} has nothing at a {key}")),
    };
    Ok(if optional {
        Type::optional(found)
    } else {
        found
    })
}

fn expect_bool(found: &Type, place: &str) -> Result<(), String> {
    match found.fits(&Type::Bool) {
        true => Ok(()),
        false => Err(format!("`{place}` takes a bool, not a {found}")),
    }
}

fn listed(types: &[Type]) -> String {
    let names: Vec<String> = types.iter().map(Type::to_string).collect();
    format!("({})", names.join(", "))
}

/// Returns how a word is named in a message; texts are not shown.
fn shown(token: &Token<'_>) -> String {
    match token {
        Token::Name(name) => format!("`{name}`"),
        Token::Sign(sign) => format!("`{sign}`"),
        Token::Int | Token::Lowest | Token::Uint | Token::Double => "a number".to_owned(),
        Token::Text | Token::Bytes => "a text".to_owned(),
        Token::End => "the end".to_owned(),
    }
}
