//! Reading the text of a template.

use serde_json::{Number, Value};

use super::{Comparison, Filter, Operand, Part, Step, Template, TemplateError};

pub(super) fn template(text: &str) -> Result<Template, TemplateError> {
    let mut reader = Reader {
        letters: text.chars().collect(),
        at: 0,
        depth: 0,
    };
    let parts = if text.contains('{') {
        reader.parts(false)
    } else {
        reader.bare_path()
    };
    parts
        .map(|parts| Template { parts })
        .map_err(|expected| TemplateError {
            template: text.to_string(),
            at: reader.at + 1,
            expected,
        })
}

/// How deep filters and ranges may stand in one another.
const DEEPEST: usize = 16;

struct Reader {
    letters: Vec<char>,
    at: usize,
    depth: usize,
}

type Outcome<T> = Result<T, &'static str>;

impl Reader {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn eat(&mut self, letter: char) -> bool {
        let found = self.peek() == Some(letter);
        self.at += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let end = self.at + word.len();
        let fits = self
            .letters
            .get(self.at..end)
            .is_some_and(|letters| letters.iter().copied().eq(word.chars()));
        let ends = self
            .letters
            .get(end)
            .is_none_or(|next| !next.is_alphanumeric() && *next != '_');
        if fits && ends {
            self.at = end;
        }
        fits && ends
    }

    fn spaces(&mut self) {
        while self.eat(' ') {}
    }

    fn enter(&mut self) -> Outcome<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("less nesting");
        }
        Ok(())
    }

    /// Reads text and blocks in braces; `in_range` ends at `{end}`.
    fn parts(&mut self, in_range: bool) -> Outcome<Vec<Part>> {
        let mut parts = Vec::new();
        loop {
            let text = self.text_until_brace();
            if !text.is_empty() {
                parts.push(Part::Text(text));
            }
            if !self.eat('{') {
                return if in_range { Err("{end}") } else { Ok(parts) };
            }
            self.spaces();
            if self.eat_word("end") {
                self.close()?;
                return if in_range {
                    Ok(parts)
                } else {
                    Err("a range before its end")
                };
            }
            if self.eat_word("range") {
                self.enter()?;
                self.spaces();
                let steps = self.path()?;
                self.close()?;
                parts.push(Part::Range(steps, self.parts(true)?));
                self.depth -= 1;
                continue;
            }
            while !self.eat('}') {
                match self.peek() {
                    None => return Err("}"),
                    Some(quote @ ('"' | '\'')) => parts.push(Part::Text(self.quoted(quote)?)),
                    Some(_) => parts.push(Part::Path(self.path()?)),
                }
                self.spaces();
            }
        }
    }

    fn close(&mut self) -> Outcome<()> {
        self.spaces();
        if self.eat('}') { Ok(()) } else { Err("}") }
    }

    fn text_until_brace(&mut self) -> String {
        let mut text = String::new();
        while let Some(letter) = self.peek().filter(|letter| *letter != '{') {
            text.push(letter);
            self.at += 1;
        }
        text
    }

    fn bare_path(&mut self) -> Outcome<Vec<Part>> {
        let steps = self.path()?;
        if self.at < self.letters.len() {
            return Err("the end");
        }
        Ok(vec![Part::Path(steps)])
    }

    fn path(&mut self) -> Outcome<Vec<Step>> {
        let start = self.at;
        let mut steps = Vec::new();
        loop {
            match self.peek() {
                Some('$') if steps.is_empty() => {
                    self.at += 1;
                    steps.push(Step::Root);
                }
                Some('@') if steps.is_empty() => {
                    self.at += 1;
                    steps.push(Step::Current);
                }
                Some('.') => {
                    self.at += 1;
                    if self.eat('.') {
                        steps.push(Step::Descend);
                    }
                    if self.eat('*') {
                        steps.push(Step::All);
                    } else if self.peek().is_some_and(is_name_letter) {
                        steps.push(Step::Field(self.name()));
                    }
                }
                Some('[') => {
                    self.at += 1;
                    steps.push(self.bracket()?);
                }
                Some('*') if steps.is_empty() => {
                    self.at += 1;
                    steps.push(Step::All);
                }
                Some(letter) if steps.is_empty() && self.at == start && is_name_letter(letter) => {
                    steps.push(Step::Field(self.name()));
                }
                _ if self.at == start => return Err("a path"),
                _ => return Ok(steps),
            }
        }
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(letter) = self.peek() {
            if letter == '\\' && self.letters.get(self.at + 1).is_some() {
                name.push(self.letters[self.at + 1]);
                self.at += 2;
            } else if is_name_letter(letter) {
                name.push(letter);
                self.at += 1;
            } else {
                break;
            }
        }
        name
    }

    fn bracket(&mut self) -> Outcome<Step> {
        self.spaces();
        if self.eat('?') {
            return self.filter();
        }
        let mut steps = Vec::new();
        loop {
            self.spaces();
            steps.push(self.selector()?);
            self.spaces();
            if self.eat(']') {
                break;
            }
            if !self.eat(',') {
                return Err("]");
            }
        }
        Ok(match steps.len() {
            1 => steps.remove(0),
            _ => Step::Union(steps),
        })
    }

    fn selector(&mut self) -> Outcome<Step> {
        match self.peek() {
            Some('*') => {
                self.at += 1;
                Ok(Step::All)
            }
            Some(quote @ ('"' | '\'')) => Ok(Step::Field(self.quoted(quote)?)),
            _ => {
                let start = self.integer()?;
                if !self.eat(':') {
                    return start.map(Step::Index).ok_or("an index");
                }
                let end = self.integer()?;
                let step = if self.eat(':') { self.integer()? } else { None };
                let step = step.unwrap_or(1);
                if step < 1 {
                    return Err("a step of 1 or more");
                }
                Ok(Step::Slice { start, end, step })
            }
        }
    }

    fn integer(&mut self) -> Outcome<Option<i64>> {
        let start = self.at;
        self.eat('-');
        while self.peek().is_some_and(|letter| letter.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return Ok(None);
        }
        let text: String = self.letters[start..self.at].iter().collect();
        text.parse().map(Some).map_err(|_| "a number")
    }

    fn filter(&mut self) -> Outcome<Step> {
        self.enter()?;
        if !self.eat('(') {
            return Err("(");
        }
        let left = self.operand()?;
        self.spaces();
        let comparison = match self.comparison() {
            None => None,
            Some(comparison) => Some((comparison, self.operand()?)),
        };
        self.spaces();
        if !self.eat(')') {
            return Err(")");
        }
        self.spaces();
        if !self.eat(']') {
            return Err("]");
        }
        self.depth -= 1;
        Ok(Step::Filter(Box::new(Filter { left, comparison })))
    }

    fn comparison(&mut self) -> Option<Comparison> {
        for (sign, comparison) in [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ] {
            let end = self.at + sign.len();
            let fits = self
                .letters
                .get(self.at..end)
                .is_some_and(|letters| letters.iter().copied().eq(sign.chars()));
            if fits {
                self.at = end;
                return Some(comparison);
            }
        }
        None
    }

    fn operand(&mut self) -> Outcome<Operand> {
        self.spaces();
        match self.peek() {
            Some(quote @ ('"' | '\'')) => Ok(Operand::Value(Value::String(self.quoted(quote)?))),
            Some('-' | '0'..='9') => self.number().map(Operand::Value),
            _ if self.eat_word("true") => Ok(Operand::Value(Value::Bool(true))),
            _ if self.eat_word("false") => Ok(Operand::Value(Value::Bool(false))),
            _ => self.path().map(Operand::Path),
        }
    }

    fn number(&mut self) -> Outcome<Value> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|letter| letter.is_ascii_digit() || "+-.eE".contains(letter))
        {
            self.at += 1;
        }
        let text: String = self.letters[start..self.at].iter().collect();
        let number: Number = text.parse().map_err(|_| "a number")?;
        Ok(Value::Number(number))
    }

    fn quoted(&mut self, quote: char) -> Outcome<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let letter = self.peek().ok_or("a closing quote")?;
            self.at += 1;
            match letter {
                '\\' => {
                    let escaped = self.peek().ok_or("a closing quote")?;
                    self.at += 1;
                    text.push(match escaped {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        other => other,
                    });
                }
                letter if letter == quote => return Ok(text),
                letter => text.push(letter),
            }
        }
    }
}

fn is_name_letter(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '/' | '\\')
}
