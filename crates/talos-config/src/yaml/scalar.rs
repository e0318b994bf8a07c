//! Writing scalars so that Go reads back what was meant.

use serde_json::Value;

use super::layout::Quote;

/// Writes a scalar on one line.
pub(super) fn inline(value: &Value, quote: Quote, in_flow: bool) -> String {
    match value {
        Value::String(text) => string(text, quote, in_flow),
        Value::Number(number) => number.to_string(),
        Value::Bool(true) => "true".to_owned(),
        Value::Bool(false) => "false".to_owned(),
        _ => "null".to_owned(),
    }
}

/// Writes a string on one line, with the quotes asked for unless they cannot hold it.
pub(super) fn string(text: &str, quote: Quote, in_flow: bool) -> String {
    if text.chars().any(needs_escape) {
        return double(text);
    }
    match quote {
        Quote::Double => double(text),
        Quote::Single => single(text),
        Quote::None if is_safe_plain(text, in_flow) => text.to_owned(),
        Quote::None if text.contains('\'') || reads_as_other(text) || text.is_empty() => {
            double(text)
        }
        Quote::None => single(text),
    }
}

/// Returns whether a string of several lines can be written as a literal block.
pub(super) fn fits_block(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
        // Line breaks beyond the last one would take in blank lines that follow in the file.
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\t', '\n'])
        && !text.chars().any(|c| c != '\n' && needs_escape(c))
        && !text.lines().any(|line| line.trim().is_empty() && !line.is_empty())
}

/// Returns whether a character can only be written as an escape.
fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn double(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if needs_escape(c) => {
                let code = u32::from(c);
                out.push_str(&if code < 0x100 {
                    format!("\\x{code:02x}")
                } else {
                    format!("\\u{code:04x}")
                });
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns whether a string means itself when written without quotes.
fn is_safe_plain(text: &str, in_flow: bool) -> bool {
    let Some(first) = text.chars().next() else {
        return false;
    };
    let bytes = text.as_bytes();
    let starts_well = match first {
        '-' | '?' | ':' => {
            bytes.len() > 1
                && !matches!(bytes[1], b' ' | b'\t' | b',' | b'[' | b']' | b'{' | b'}')
                && text != "---"
        }
        ',' | '[' | ']' | '{' | '}' | '#' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
        | '@' | '`' | ' ' | '\t' => false,
        _ => true,
    };
    starts_well
        && !text.ends_with([' ', '\t', ':'])
        && !text.contains(": ")
        && !text.contains(":\t")
        && !text.contains(" #")
        && !text.contains("\t#")
        && !text.starts_with("---")
        && !text.starts_with("...")
        && !(in_flow && text.contains([',', '[', ']', '{', '}']))
        && !(in_flow && (text.contains(':') || text.starts_with('?')) && !is_plain_colon(text))
        && !reads_as_other(text)
}

/// Returns whether each colon of a string stands before a letter, digit or slash, as in an image or a URL.
fn is_plain_colon(text: &str) -> bool {
    text.split(':')
        .skip(1)
        .all(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/'))
}

/// Returns whether Go, or an older reader, would take a plain string for a number, time, boolean or null.
fn reads_as_other(text: &str) -> bool {
    const WORDS: [&str; 13] = [
        "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "<<", "=", "",
    ];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
        || looks_like_number(text)
        || looks_like_time(text)
}

/// Returns whether a string has the look of a number: signs, digits, `_`, `0x`, `0o`, exponents, `.inf`, base 60.
fn looks_like_number(text: &str) -> bool {
    let body = text.trim_start_matches(['+', '-']);
    let lower = body.to_ascii_lowercase();
    if matches!(lower.as_str(), ".inf" | ".nan") {
        return true;
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            return digits.chars().all(|c| c == '_' || c.is_digit(radix));
        }
    }
    let starts = lower.starts_with(|c: char| c.is_ascii_digit())
        || (lower.starts_with('.') && lower[1..].starts_with(|c: char| c.is_ascii_digit()));
    let number = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '_' | '.' | 'e' | '+' | '-' | ':'))
    };
    // Two dots are an address or a version, which no reader takes for a number.
    starts && number(&lower) && lower.matches('.').count() < 2
}

/// Returns whether a string starts like a date, which readers of YAML 1.1 take for a time.
fn looks_like_time(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let (Some(year), Some(month), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    year.len() == 4
        && digits(year)
        && digits(month)
        && rest.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &str) {
        assert_eq!(string(text, Quote::None, false), want);
    }

    #[test]
    fn strings_that_go_reads_as_something_else_are_quoted() {
        for text in [
            "1_000",
            "0_7",
            "0x_1",
            "0o7",
            "0b1",
            "1e3",
            "1.5",
            ".5",
            "-1",
            "+1",
            "12:30",
            "1:30:00",
            "2026-11-30",
            "2001-12-14t21:59:43.10-05:00",
            "true",
            "Yes",
            "no",
            "ON",
            "off",
            "y",
            "N",
            "null",
            "~",
            ".inf",
            "-.Inf",
            ".NaN",
            "",
            "<<",
            "0644",
            "1.10",
        ] {
            check(text, &format!("\"{text}\""));
        }
    }

    #[test]
    fn strings_that_mean_themselves_stay_plain() {
        for text in [
            "10.5.0.2",
            "10.96.0.0/12",
            "v1.34.0",
            "1.34.0",
            "registry.k8s.io/kube-proxy:v1.34.0",
            "https://10.5.10.2:6443",
            "a b",
            "0644x",
            "-a",
            "172.30.0.11",
            "00:11",
            "a:b",
            "fd00::1",
        ] {
            if text == "00:11" {
                check(text, "\"00:11\"");
            } else {
                check(text, text);
            }
        }
    }

    #[test]
    fn strings_that_would_change_the_structure_are_quoted() {
        check("a: b", "'a: b'");
        check("a #b", "'a #b'");
        check("- a", "'- a'");
        check("*a", "'*a'");
        check("it's: x", "\"it's: x\"");
        check("a\nb", "\"a\\nb\"");
        check("!system_disk", "'!system_disk'");
        check("00:11:*", "00:11:*");
        check(" a", "' a'");
        check("a:", "'a:'");
        check("\u{7f}\u{2028}", "\"\\x7f\\u2028\"");
        assert_eq!(string("a,b", Quote::None, true), "'a,b'");
        assert_eq!(
            string("https://a.example", Quote::None, true),
            "https://a.example"
        );
        assert_eq!(string("fd00::1", Quote::None, true), "'fd00::1'");
    }

    #[test]
    fn the_quotes_of_the_old_value_are_kept() {
        assert_eq!(string("b", Quote::Double, false), "\"b\"");
        assert_eq!(string("it's", Quote::Single, false), "'it''s'");
    }
}
