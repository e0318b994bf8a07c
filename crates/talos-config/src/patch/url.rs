//! Merging URLs part by part, as the official tool does: what the right one leaves out stays.

use std::borrow::Cow;

/// Merges two URLs; none where both name a user, at which the official tool fails.
pub(super) fn merge(left: &str, right: &str) -> Option<String> {
    let (left, right) = (split(left), split(right));
    if !left.user.is_empty() && !right.user.is_empty() {
        return None;
    }
    let pick = |left: &str, right: &str| -> String {
        if right.is_empty() { left } else { right }.to_owned()
    };
    let scheme = pick(left.scheme, right.scheme);
    let user = pick(left.user, right.user);
    let host = pick(left.host, right.host);
    let path = pick(left.path, right.path);
    let path: Cow<'_, str> = if path.is_empty() || path.starts_with('/') || host.is_empty() {
        Cow::Owned(path)
    } else {
        Cow::Owned(format!("/{path}"))
    };
    Some(format!(
        "{scheme}{user}{host}{path}{}{}",
        pick(left.query, right.query),
        pick(left.fragment, right.fragment)
    ))
}

/// The parts of a URL with their marks: `scheme://`, `user@`, `host:port`, `/path`, `?query`, `#fragment`.
struct Url<'a> {
    scheme: &'a str,
    user: &'a str,
    host: &'a str,
    path: &'a str,
    query: &'a str,
    fragment: &'a str,
}

fn split(text: &str) -> Url<'_> {
    let (text, fragment) = text.split_at(text.find('#').unwrap_or(text.len()));
    let (text, query) = text.split_at(text.find('?').unwrap_or(text.len()));
    let (scheme, rest) = match text.find("://") {
        Some(at) => text.split_at(at + 3),
        None => ("", text),
    };
    let end = if scheme.is_empty() {
        0
    } else {
        rest.find('/').unwrap_or(rest.len())
    };
    let (authority, path) = rest.split_at(end);
    let (user, host) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    Url {
        scheme,
        user,
        host,
        path,
        query,
        fragment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_merge_part_by_part() {
        for (left, right, want) in [
            ("https://a:6443", "https://b:1", "https://b:1"),
            ("https://a:6443/p?q=1", "https://b", "https://b/p?q=1"),
            ("https://u:p@a/", "https://b/x", "https://u:p@b/x"),
            (
                "udp://10.0.0.1:514/",
                "tcp://10.0.0.2:1/",
                "tcp://10.0.0.2:1/",
            ),
        ] {
            assert_eq!(merge(left, right).as_deref(), Some(want));
        }
        assert_eq!(merge("https://u:p@a", "https://v:q@a"), None);
    }
}
