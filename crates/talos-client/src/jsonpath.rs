//! JSONPath as Kubernetes writes it: templates such as `{.spec.image}` or `{range .items[*]}{.id}{"\n"}{end}`.
//!
//! Supported are fields, quoted fields, indexes (negative from the end), slices, `*`, `..`, unions of names or indexes,
//! filters with one comparison, `@`, `$`, `range`, and text in quotes. What is missing selects nothing.

mod evaluate;
mod parse;

use serde_json::Value;

/// A template, ready to be filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Path(Vec<Step>),
    Range(Vec<Step>, Vec<Self>),
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Root,
    Current,
    Field(String),
    Index(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    All,
    Descend,
    Union(Vec<Self>),
    Filter(Box<Filter>),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Operand,
    comparison: Option<(Comparison, Operand)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(Vec<Step>),
    Value(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Tells where a template is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("JSONPath {template:?} is wrong at character {at}: {expected} expected")]
pub struct TemplateError {
    /// The template as given.
    pub template: String,
    /// Position of the problem, from 1.
    pub at: usize,
    /// What belongs there.
    pub expected: &'static str,
}

impl Template {
    /// Reads a template; a text without braces is one path.
    ///
    /// # Errors
    /// The text is not a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        parse::template(text)
    }

    /// Returns whether the template has text beside its paths, so that it says how its values are laid out.
    pub fn has_text(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, Part::Path(_)))
    }

    /// Returns what the paths of the template select, in order.
    pub fn values<'a>(&'a self, root: &'a Value) -> Vec<&'a Value> {
        let paths = self.parts.iter().filter_map(|part| match part {
            Part::Path(steps) | Part::Range(steps, _) => Some(steps),
            Part::Text(_) => None,
        });
        paths
            .flat_map(|steps| evaluate::select(steps, root, root))
            .collect()
    }

    /// Fills the template in: values of one path are separated by spaces, lists and mappings are JSON, null is nothing.
    pub fn render(&self, root: &Value) -> String {
        let mut text = String::new();
        render_parts(&self.parts, root, root, &mut text);
        text
    }
}

fn render_parts(parts: &[Part], root: &Value, current: &Value, text: &mut String) {
    for part in parts {
        match part {
            Part::Text(literal) => text.push_str(literal),
            Part::Path(steps) => {
                let values = evaluate::select(steps, root, current);
                let texts: Vec<String> = values.into_iter().map(value_text).collect();
                text.push_str(&texts.join(" "));
            }
            Part::Range(steps, inner) => {
                for value in evaluate::select(steps, root, current) {
                    render_parts(inner, root, value, text);
                }
            }
        }
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
