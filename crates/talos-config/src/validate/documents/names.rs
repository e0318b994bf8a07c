//! What names may look like.

/// Returns what is wrong with a name of letters, digits, `-` and perhaps `_`.
pub(super) fn simple(name: &str, most: usize, underscore: bool) -> Option<String> {
    let known =
        |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || (underscore && byte == b'_');
    if !name.bytes().all(known) {
        let more = if underscore {
            ", `-` and `_`"
        } else {
            " and `-`"
        };
        return Some(format!("a name has only ASCII letters, digits{more}"));
    }
    (name.len() > most).then(|| format!("a name has at most {most} characters"))
}

/// Returns what is wrong with a name of a Kubernetes object.
pub(super) fn subdomain(name: &str) -> Option<String> {
    let label = |label: &str| {
        let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(known)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.len() > 253 {
        return Some("the name has more than 253 characters".into());
    }
    (!name.split('.').all(label)).then(|| {
        "lower case letters, digits, `-` and `.` are expected, with a letter or digit at each end".into()
    })
}

/// Returns what is wrong with the key of a label, an annotation or a taint: a name, perhaps after a domain and a `/`.
pub(super) fn qualified(key: &str) -> Option<String> {
    let name = match key.split_once('/') {
        Some(("", _)) => return Some("the part before the `/` is empty".into()),
        Some((domain, name)) => {
            if let Some(wrong) = subdomain(domain) {
                return Some(format!("the part before the `/` is no domain: {wrong}"));
            }
            name
        }
        None => key,
    };
    match name.len() {
        0 => Some("the name is empty".into()),
        1..=63 => (!is_word(name)).then(|| {
            "letters, digits, `-`, `_` and `.` are expected, with a letter or digit at each end"
                .into()
        }),
        _ => Some("the name has more than 63 characters".into()),
    }
}

/// Returns what is wrong with the value of a label.
pub(super) fn label_value(value: &str) -> Option<String> {
    match value.len() {
        0 => None,
        1..=63 => (!is_word(value)).then(|| {
            "a value has letters, digits, `-`, `_` and `.`, with a letter or digit at each end"
                .into()
        }),
        _ => Some("a value has at most 63 characters".into()),
    }
}

fn is_word(text: &str) -> bool {
    let end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    let known = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    end(bytes.first()) && end(bytes.last()) && bytes.iter().all(known)
}
