//! Reads an expression and tells its type: operators and what they stand between.

mod values;

use super::functions;
use super::lex::{Token, tokens};
use super::types::Type;
use super::variables::{self, Variables};

/// How deep an expression can be nested.
const DEEPEST: usize = 200;

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

    /// Takes a sign as often as it comes, and returns whether that is odd: two of a kind mean nothing.
    fn takes_odd(&mut self, sign: &str) -> bool {
        let mut odd = false;
        while self.take(sign) {
            odd = !odd;
        }
        odd
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
                let message = format!("`?:` chooses between {yes} and {no}");
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
            .ok_or_else(|| format!("`{sign}` does not work on {left} and {right}"))
    }

    fn unary(&mut self) -> Result<Type, String> {
        if self.takes_odd("!") {
            let found = self.member()?;
            expect_bool(&found, "!")?;
            self.selected = false;
            return Ok(Type::Bool);
        }
        if self.takes_odd("-") {
            if *self.token() == Token::Lowest {
                self.next += 1;
                return Ok(Type::Int);
            }
            let found = self.member()?;
            self.selected = false;
            return match found {
                Type::Int | Type::Double | Type::Any => Ok(found),
                _ => Err(format!("`-` does not work on {found}")),
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
            _ => return Err(format!("{of} has no field {name}")),
        };
        Ok(if optional {
            Type::optional(found)
        } else {
            found
        })
    }
}

fn index(of: &Type, key: &Type, optional: bool) -> Result<Type, String> {
    let found = match of {
        Type::Any => Type::Any,
        Type::List(item) if key.fits(&Type::Int) => (**item).clone(),
        Type::Map(known, value) if key.fits(known) => (**value).clone(),
        Type::Optional(inner) => return index(inner, key, true),
        _ => return Err(format!("{of} has nothing at {key}")),
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
        false => Err(format!("`{place}` takes bool, not {found}")),
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
