//! A value that is to be written, and writing it in many ways.

use serde_json::Value;

use super::random::Random;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    /// A scalar that is written exactly so.
    Raw(String),
    /// A string, written in any form that means it.
    Text(String),
    /// A string in quotes.
    Quoted(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
    Anchor(String, Box<Self>),
    Alias(String),
}

impl Tree {
    pub(super) fn raw(text: &str) -> Self {
        Self::Raw(text.to_owned())
    }

    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(super) fn quoted(text: &str) -> Self {
        Self::Quoted(text.to_owned())
    }

    pub(super) fn empty() -> Self {
        Self::Map(Vec::new())
    }

    /// Returns the entry of a mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries
                .iter()
                .find(|(known, _)| known == key)
                .map(|(_, value)| value),
            Self::Anchor(_, inner) => inner.get(key),
            _ => None,
        }
    }

    /// Returns the string, if it is one.
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Quoted(text) => Some(text),
            _ => None,
        }
    }

    fn is_scalar(&self) -> bool {
        matches!(
            self,
            Self::Raw(_) | Self::Text(_) | Self::Quoted(_) | Self::Alias(_)
        )
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::List(items) => items.is_empty(),
            Self::Map(entries) => entries.is_empty(),
            _ => false,
        }
    }

    /// Returns whether the tree may stand between brackets on one line.
    fn flows(&self) -> bool {
        match self {
            Self::Raw(text) => !text.contains([',', '[', ']', '{', '}']),
            Self::Text(_) | Self::Quoted(_) => true,
            Self::List(items) => items.iter().all(Self::flows),
            Self::Map(entries) => entries.iter().all(|(_, value)| value.flows()),
            Self::Anchor(..) | Self::Alias(_) => false,
        }
    }
}

impl From<&Value> for Tree {
    fn from(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(map) => Self::Map(
                map.iter()
                    .map(|(key, value)| (key.clone(), Self::from(value)))
                    .collect(),
            ),
            scalar => Self::Raw(scalar.to_string()),
        }
    }
}

/// How a text is written.
#[derive(Clone, Debug)]
pub(super) struct Style {
    step: usize,
    lists_indented: bool,
    comments: usize,
    flow: usize,
    quotes: usize,
    windows: bool,
    marker: bool,
}

impl Style {
    pub(super) fn any(random: &mut Random) -> Self {
        let busy = random.percent(40);
        Self {
            step: if random.percent(60) { 4 } else { 2 },
            lists_indented: random.percent(60),
            comments: if busy { 12 } else { 0 },
            flow: if random.percent(40) { 12 } else { 0 },
            quotes: if random.percent(40) { 15 } else { 0 },
            windows: random.percent(3),
            marker: random.percent(10),
        }
    }

    /// Writes documents as one text.
    pub(super) fn write(&self, random: &mut Random, documents: &[Tree]) -> String {
        let mut writer = Writer {
            style: self,
            random,
            out: String::new(),
        };
        for (index, document) in documents.iter().enumerate() {
            if index > 0 || self.marker {
                writer.out.push_str("---\n");
            }
            match document {
                Tree::Map(entries) if !entries.is_empty() => writer.map(entries, 0, false),
                Tree::List(items) if !items.is_empty() => writer.list(items, 0),
                other => {
                    writer.flow(other);
                    writer.out.push('\n');
                }
            }
        }
        match self.windows {
            true => writer.out.replace('\n', "\r\n"),
            false => writer.out,
        }
    }
}

struct Writer<'a> {
    style: &'a Style,
    random: &'a mut Random,
    out: String,
}

impl Writer<'_> {
    fn map(&mut self, entries: &[(String, Tree)], indent: usize, mut started: bool) {
        for (key, value) in entries {
            if !started {
                self.comment(indent);
                self.pad(indent);
            }
            started = false;
            match (key.as_str(), value) {
                ("<<", Tree::Alias(_)) => self.out.push_str("<<"),
                (key, _) => {
                    let key = self.word(key, true);
                    self.out.push_str(&key);
                }
            }
            self.out.push(':');
            self.value(value, indent);
        }
    }

    /// Writes what follows a key.
    fn value(&mut self, value: &Tree, indent: usize) {
        let flow = self.random.percent(self.style.flow) && value.flows();
        match value {
            Tree::Anchor(name, inner) => {
                self.out.push_str(&format!(" &{name}"));
                self.value(inner, indent);
            }
            value if value.is_scalar() => self.scalar(value, indent),
            value if flow || value.is_empty() => {
                self.out.push(' ');
                self.flow(value);
                self.end_of_line();
            }
            Tree::Map(entries) => {
                self.end_of_line();
                self.map(entries, indent + self.style.step, false);
            }
            Tree::List(items) => {
                self.end_of_line();
                let step = if self.style.lists_indented {
                    self.style.step
                } else {
                    0
                };
                self.list(items, indent + step);
            }
            _ => {}
        }
    }

    fn list(&mut self, items: &[Tree], indent: usize) {
        for item in items {
            self.comment(indent);
            self.pad(indent);
            self.out.push('-');
            let flow = self.random.percent(self.style.flow) && item.flows();
            match item {
                Tree::Map(entries) if !entries.is_empty() && !flow => {
                    self.out.push(' ');
                    self.map(entries, indent + 2, true);
                }
                Tree::Anchor(name, inner) => match inner.as_ref() {
                    Tree::Map(entries) if !entries.is_empty() => {
                        self.out.push_str(&format!(" &{name}\n"));
                        self.map(entries, indent + 2, false);
                    }
                    _ => self.value(item, indent),
                },
                Tree::List(_) => {
                    self.out.push(' ');
                    self.flow(item);
                    self.end_of_line();
                }
                item => self.value(item, indent),
            }
        }
    }

    fn scalar(&mut self, value: &Tree, indent: usize) {
        if let Tree::Text(text) = value
            && is_block(text)
            && self.random.percent(70)
        {
            let body = text.strip_suffix('\n');
            self.out
                .push_str(if body.is_some() { " |\n" } else { " |-\n" });
            for line in body.unwrap_or(text).split('\n') {
                if !line.is_empty() {
                    self.pad(indent + self.style.step);
                    self.out.push_str(line);
                }
                self.out.push('\n');
            }
            return;
        }
        self.out.push(' ');
        let text = match value {
            Tree::Raw(text) => text.clone(),
            Tree::Text(text) => self.word(text, false),
            Tree::Quoted(text) => self.quote(text),
            Tree::Alias(name) => format!("*{name}"),
            _ => String::new(),
        };
        self.out.push_str(&text);
        self.end_of_line();
    }

    fn flow(&mut self, value: &Tree) {
        match value {
            Tree::Map(entries) => {
                self.out.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    if index > 0 {
                        self.out.push_str(", ");
                    }
                    let key = self.word(key, true);
                    self.out.push_str(&key);
                    self.out.push_str(": ");
                    self.flow(value);
                }
                self.out.push('}');
            }
            Tree::List(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.out.push_str(", ");
                    }
                    self.flow(item);
                }
                self.out.push(']');
            }
            Tree::Raw(text) => self.out.push_str(text),
            Tree::Text(text) => {
                let text = self.word(text, true);
                self.out.push_str(&text);
            }
            Tree::Quoted(text) => {
                let text = self.quote(text);
                self.out.push_str(&text);
            }
            Tree::Anchor(..) | Tree::Alias(_) => {}
        }
    }

    /// Writes a string plain where that is safe, else in quotes.
    fn word(&mut self, text: &str, narrow: bool) -> String {
        match is_plain(text, narrow) && !self.random.percent(self.style.quotes) {
            true => text.to_owned(),
            false => self.quote(text),
        }
    }

    fn quote(&mut self, text: &str) -> String {
        let simple = text.chars().all(|c| !c.is_control());
        if simple && self.random.percent(40) {
            return format!("'{}'", text.replace('\'', "''"));
        }
        let mut out = String::from("\"");
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                c => out.push(c),
            }
        }
        out.push('"');
        out
    }

    fn comment(&mut self, indent: usize) {
        if self.random.percent(self.style.comments) {
            if self.random.percent(30) {
                self.out.push('\n');
            }
            self.pad(indent);
            let text = self.random.one(&[
                "# a remark",
                "# key: value",
                "#",
                "# - item",
                "# 'quoted\" text",
            ]);
            self.out.push_str(text);
            self.out.push('\n');
        }
    }

    fn end_of_line(&mut self) {
        if self.random.percent(self.style.comments / 2) {
            self.out
                .push_str(self.random.one(&[" # why", "   # x: y", " #"]));
        }
        self.out.push('\n');
    }

    fn pad(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }
}

/// Returns whether a string can be written as a literal block without an indicator.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\t', '\n', '#'])
        && body.chars().all(|c| c == '\n' || !c.is_control())
        && body
            .split('\n')
            .all(|line| line.is_empty() || !line.trim().is_empty())
}

/// Returns whether a string means itself when written plain; a key or an item between brackets has less room.
fn is_plain(text: &str, narrow: bool) -> bool {
    const WORDS: [&str; 12] = [
        "true", "false", "null", "yes", "no", "on", "off", "y", "n", "~", "nan", "inf",
    ];
    let first = text.chars().next().unwrap_or(' ');
    let letter = first.is_ascii_alphabetic() || first == '/';
    let safe = |c: char| {
        c.is_ascii_alphanumeric()
            || "_./@%+=-".contains(c)
            || (c == ':' && !narrow)
            || (c == ' ' && !narrow)
    };
    letter
        && text.chars().all(safe)
        && !text.ends_with([':', ' '])
        && !text.contains(": ")
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}
