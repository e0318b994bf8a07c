//! What a scalar means to Go's YAML reader, which Talos uses.

use granit_parser::{ScalarStyle, Tag};
use serde_json::Value;

/// Returns the value of a scalar.
pub(super) fn value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    match tag.map(|tag| tag.core_suffix().unwrap_or_default()) {
        None if style == ScalarStyle::Plain => plain(text),
        Some("int" | "float" | "bool" | "null") => plain(text),
        _ => Value::String(text.to_owned()),
    }
}

/// Returns what a text without quotes means.
///
/// `yes`, `off` and dates are strings, a leading 0 makes an octal number, and `_` in a number means nothing. What JSON
/// has no number for, `.inf` and `.nan`, stays a string.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
        && let Some(number) = number(text)
    {
        return number;
    }
    Value::String(text.to_owned())
}

fn number(text: &str) -> Option<Value> {
    let plain = text.replace('_', "");
    integer(&plain).or_else(|| float(&plain))
}

fn integer(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'o' | b'O', ..] => (&digits[2..], 8),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    // `from_str_radix` takes a sign of its own.
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    if text.starts_with('-') {
        let signed = i64::from_str_radix(&format!("-{digits}"), radix).ok()?;
        return Some(Value::from(signed));
    }
    u64::from_str_radix(digits, radix).ok().map(Value::from)
}

fn float(text: &str) -> Option<Value> {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => (&body[..at], Some(&body[at + 1..])),
        None => (body, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    let is_exponent =
        exponent.is_none_or(|text| digits(text.strip_prefix(['+', '-']).unwrap_or(text)));
    if !is_mantissa || !is_exponent {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    serde_json::Number::from_f64(number).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_scalars_mean_what_go_reads() {
        for (text, want) in [
            ("0644", json!(420)),
            ("0o666", json!(438)),
            ("0x1F", json!(31)),
            ("-0x10", json!(-16)),
            ("0b101", json!(5)),
            ("0_7", json!(7)),
            ("1_000", json!(1000)),
            ("+1", json!(1)),
            ("-1", json!(-1)),
            ("08", json!(8.0)),
            ("1_0.5", json!(10.5)),
            ("1.10", json!(1.1)),
            ("1.", json!(1.0)),
            (".5", json!(0.5)),
            ("1e3", json!(1000.0)),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!(18_446_744_073_709_552_000.0)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("yes", json!("yes")),
            ("off", json!("off")),
            ("2026-11-30", json!("2026-11-30")),
            ("12:30", json!("12:30")),
            ("1.2.3", json!("1.2.3")),
            ("10.5.0.2", json!("10.5.0.2")),
            (".inf", json!(".inf")),
            (".", json!(".")),
            ("-", json!("-")),
            ("--1", json!("--1")),
            ("0x", json!("0x")),
            ("0x-1", json!("0x-1")),
            ("e3", json!("e3")),
            ("_1", json!("_1")),
            ("True", json!(true)),
            ("NULL", json!(null)),
        ] {
            assert_eq!(plain(text), want, "{text}");
        }
    }
}
