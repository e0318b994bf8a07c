//! The words of an expression.

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Name(&'a str),
    Int,
    /// The whole number that needs a `-` before it.
    Lowest,
    Uint,
    Double,
    Text,
    Bytes,
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

/// Operators and brackets, longest first.
const SIGNS: [&str; 26] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ",", ".",
    "(", ")", "[", "]", "{", "}", "=", "`",
];

/// Longest expression, in characters.
const LONGEST: usize = 100_000;

/// Splits an expression into its words.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    if text.chars().count() > LONGEST {
        return Err(format!("the expression has more than {LONGEST} characters"));
    }
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.find('\n').map_or("", |end| &comment[end..]);
            continue;
        }
        let Some(first) = rest.chars().next() else {
            break;
        };
        let (token, length) = match first {
            _ if quoted(rest).is_some() => quote(rest)?,
            'a'..='z' | 'A'..='Z' | '_' => name(rest),
            '0'..='9' => number(rest)?,
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => number(rest)?,
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.ok_or_else(|| format!("there is no operator {first:?}"))?;
                (Token::Sign(sign), sign.len())
            }
        };
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens.push(Token::End);
    Ok(tokens)
}

fn name(text: &str) -> (Token<'_>, usize) {
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    (Token::Name(&text[..end]), end)
}

/// Returns the letters before a quote (`r`, `b`, both) and the quote, if a text starts so.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let start = text.find(|c: char| !matches!(c, 'r' | 'R' | 'b' | 'B'))?;
    let rest = &text[start..];
    let known = matches!(
        text[..start].to_ascii_lowercase().as_str(),
        "" | "r" | "b" | "rb" | "br"
    );
    let quote = ["\"\"\"", "'''", "\"", "'"]
        .into_iter()
        .find(|quote| rest.starts_with(quote))?;
    known.then_some((&text[..start], quote))
}

fn quote(text: &str) -> Result<(Token<'_>, usize), String> {
    let (letters, quote) = quoted(text).unwrap_or_default();
    let raw = letters.contains(['r', 'R']);
    let bytes = letters.contains(['b', 'B']);
    let open = letters.len() + quote.len();
    let mut rest = &text[open..];
    loop {
        if let Some(after) = rest.strip_prefix(quote) {
            let token = if bytes { Token::Bytes } else { Token::Text };
            return Ok((token, text.len() - after.len()));
        }
        let Some(letter) = rest.chars().next() else {
            return Err(format!("the closing {quote} is missing"));
        };
        if matches!(letter, '\n' | '\r') && quote.len() == 1 {
            return Err(format!("the closing {quote} is missing on the line"));
        }
        let length = match letter {
            '\\' if !raw => 1 + escape(&rest[1..], bytes)?,
            _ => letter.len_utf8(),
        };
        rest = &rest[length..];
    }
}

/// Returns the length of what follows a backslash.
fn escape(text: &str, bytes: bool) -> Result<usize, String> {
    let digits = |from: usize, count: usize, radix: u32| {
        let code = text.get(from..from + count)?;
        let all = code.chars().all(|c| c.is_digit(radix));
        all.then(|| u32::from_str_radix(code, radix).ok()).flatten()
    };
    let code = |code: Option<u32>, length: usize| {
        let good = code.is_some_and(|code| char::from_u32(code).is_some());
        good.then_some(length)
    };
    let length = match text.chars().next() {
        Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '\\' | '\'' | '"' | '`' | '?') => Some(1),
        Some('x' | 'X') => code(digits(1, 2, 16), 3),
        Some('u') if !bytes => code(digits(1, 4, 16), 5),
        Some('U') if !bytes => code(digits(1, 8, 16), 9),
        Some('0'..='3') => code(digits(0, 3, 8), 3),
        _ => None,
    };
    length.ok_or_else(|| {
        "a `\\` in a text is followed by nothing that it can stand before".to_owned()
    })
}

fn number(text: &str) -> Result<(Token<'_>, usize), String> {
    let digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let unsigned = |length: usize| text[length..].starts_with(['u', 'U']);
    let too_big = |_| "a number is too big".to_owned();
    if let Some(hex) = text.strip_prefix("0x") {
        let length = hex
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(hex.len());
        if length > 0 {
            let value = u64::from_str_radix(&hex[..length], 16).map_err(too_big)?;
            return whole(value, 2 + length, unsigned(2 + length));
        }
    }
    let mut length = digits(text);
    let mut double = false;
    if text[length..].starts_with('.') && digits(&text[length + 1..]) > 0 {
        length += 1 + digits(&text[length + 1..]);
        double = true;
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let count = digits(&text[length + 1 + sign..]);
        if count > 0 {
            length += 1 + sign + count;
            double = true;
        }
    }
    if double {
        return Ok((Token::Double, length));
    }
    whole(
        text[..length].parse().map_err(too_big)?,
        length,
        unsigned(length),
    )
}

fn whole<'a>(value: u64, length: usize, unsigned: bool) -> Result<(Token<'a>, usize), String> {
    match unsigned {
        true => Ok((Token::Uint, length + 1)),
        false if value == 1 << 63 => Ok((Token::Lowest, length)),
        false if value > 1 << 63 => Err("a number is too big".to_owned()),
        false => Ok((Token::Int, length)),
    }
}
