//! YAML as Talos writes it: block style, indented by four, strings quoted only where needed.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

/// Renders a value the way Go's `yaml/v4` does with its default indentation.
pub(crate) fn render(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(&mut out, map, 0, false),
        Value::Array(items) if !items.is_empty() => sequence(&mut out, items, 0, false),
        _ => scalar(&mut out, value, 0, STEP),
    }
    out
}

/// Writes the entries of a mapping; the first one continues a line that a list item began.
fn mapping(out: &mut String, map: &Map<String, Value>, indent: usize, mut continued: bool) {
    // Inside of a list item the keys stand at an odd place; what is below them falls back into step.
    let deeper = (indent + STEP) / STEP * STEP;
    for (key, value) in map {
        if !continued {
            pad(out, indent);
        }
        continued = false;
        out.push_str(&inline(key));
        out.push(':');
        match value {
            Value::Object(map) if !map.is_empty() => {
                out.push('\n');
                mapping(out, map, deeper, false);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                sequence(out, items, deeper, false);
            }
            _ => {
                out.push(' ');
                scalar(out, value, indent, deeper);
            }
        }
    }
}

fn sequence(out: &mut String, items: &[Value], indent: usize, mut continued: bool) {
    for item in items {
        if !continued {
            pad(out, indent);
        }
        continued = false;
        out.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => mapping(out, map, indent + 2, true),
            Value::Array(items) if !items.is_empty() => sequence(out, items, indent + 2, true),
            _ => scalar(out, item, indent, indent + 2),
        }
    }
}

/// Writes what fits behind a key or dash at column `indent`, and the end of the line; more lines
/// go to the column `deeper`.
fn scalar(out: &mut String, value: &Value, indent: usize, deeper: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
        Value::String(string) if fits_block(string) => {
            return block(out, string, indent, deeper);
        }
        Value::String(string) => out.push_str(&inline(string)),
    }
    out.push('\n');
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Tells whether a text is written as a literal block: it has several lines, and no line ends in a
/// space, which a block would hide.
fn fits_block(string: &str) -> bool {
    string.contains('\n')
        && !string.contains(" \n")
        && !string.ends_with(' ')
        && !string.chars().any(is_special)
}

fn block(out: &mut String, string: &str, indent: usize, deeper: usize) {
    out.push('|');
    if string.starts_with([' ', '\n']) {
        out.push_str(&(deeper - indent).to_string());
    }
    if !string.ends_with('\n') {
        out.push('-');
    } else if string == "\n" || string.ends_with("\n\n") {
        out.push('+');
    }
    out.push('\n');
    for line in string.strip_suffix('\n').unwrap_or(string).split('\n') {
        if !line.is_empty() {
            pad(out, deeper);
            out.push_str(line);
        }
        out.push('\n');
    }
}

/// Returns a text on one line: plain, else in single quotes, else in double quotes.
fn inline(string: &str) -> String {
    if string.is_empty() || LOOKS_TYPED.is_match(string) {
        return format!("\"{string}\"");
    }
    if string.contains('\n') || string.chars().any(is_special) {
        return double_quoted(string);
    }
    if needs_quotes(string) {
        return format!("'{}'", string.replace('\'', "''"));
    }
    string.to_owned()
}

fn needs_quotes(string: &str) -> bool {
    let lone = |mark: char| string.starts_with(mark) && !string[1..].starts_with(is_word);
    string.starts_with(INDICATORS)
        || ['-', '?', ':'].into_iter().any(lone)
        || string.starts_with("---")
        || string.starts_with("...")
        || string.starts_with(' ')
        || string.ends_with([' ', ':'])
        || string.contains(": ")
        || string.contains(" #")
}

fn is_word(c: char) -> bool {
    c != ' '
}

fn is_special(c: char) -> bool {
    (c.is_control() && c != '\n') || c == '\u{feff}'
}

fn double_quoted(string: &str) -> String {
    let mut out = String::from("\"");
    for c in string.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{feff}' => out.push_str("\\uFEFF"),
            c if c.is_control() => out.push_str(&format!("\\x{:02X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Texts that would be read as null, a boolean, a number, a time or a merge key.
static LOOKS_TYPED: LazyLock<Regex> = LazyLock::new(|| {
    let forms = [
        "~|null|Null|NULL|true|True|TRUE|false|False|FALSE|<<",
        r"[-+]?[0-9][0-9_]*|[-+]?0x[0-9a-fA-F_]+|[-+]?0o[0-7_]+|[-+]?0b[01_]+",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?",
        r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?",
        r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9].*)?",
    ];
    Regex::new(&format!("^(?:{})$", forms.join("|"))).expect("a valid pattern")
});

/// Marks that begin something else than a plain text.
const INDICATORS: [char; 16] = [
    '#', ',', '[', ']', '{', '}', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`',
];

const STEP: usize = 4;

#[cfg(test)]
pub(super) mod tests;
