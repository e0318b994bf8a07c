//! Labels, annotations and taints of Kubernetes nodes.

use crate::validate::at::At;
use crate::validate::sink::Sink;

/// How long annotations may be together.
const ANNOTATIONS: usize = 256 * 1024;

/// Checks labels.
pub(super) fn labels(labels: &At<'_>, sink: &mut Sink<'_>) {
    for (key, value) in labels.entries() {
        qualified(key, &value, sink);
        label_value(&value.text(), &value, sink);
    }
}

/// Checks annotations.
pub(super) fn annotations(annotations: &At<'_>, sink: &mut Sink<'_>) {
    let mut length = 0;
    for (key, value) in annotations.entries() {
        qualified(key, &value, sink);
        if matches!(
            key,
            "talos.dev/owned-labels" | "talos.dev/owned-annotations" | "talos.dev/owned-taints"
        ) {
            sink.error("forbidden", &value, "the annotation is Talos's own");
        }
        length += key.len() + value.text().len();
    }
    if length > ANNOTATIONS {
        let message = format!("the annotations are longer than {ANNOTATIONS} bytes together");
        sink.error("too-long", annotations, message);
    }
}

/// Checks taints, written as `value:effect` or `effect`.
pub(super) fn taints(taints: &At<'_>, sink: &mut Sink<'_>) {
    for (key, taint) in taints.entries() {
        if !qualified(key, &taint, sink) {
            continue;
        }
        let text = taint.text();
        let (value, effect) = text.split_once(':').unwrap_or(("", &text));
        if !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
            let message = "the effect is none of NoSchedule, PreferNoSchedule and NoExecute";
            sink.error("bad-value", &taint, message);
        } else {
            label_value(value, &taint, sink);
        }
    }
}

/// Checks a key such as `example.com/name`, and returns whether it is one.
fn qualified(key: &str, at: &At<'_>, sink: &mut Sink<'_>) -> bool {
    let fault = match key.split_once('/') {
        Some(("", _)) => Some("nothing stands before the `/` of the key"),
        Some((prefix, _)) if !is_subdomain(prefix) => {
            Some("what stands before the `/` of the key is no lower-case DNS name")
        }
        Some((_, name)) if name.contains('/') => Some("the key has more than one `/`"),
        Some((_, name)) => name_fault(name),
        None => name_fault(key),
    };
    if let Some(fault) = fault {
        sink.error("bad-name", at, fault);
    }
    fault.is_none()
}

fn name_fault(name: &str) -> Option<&'static str> {
    match name {
        "" => Some("the key has no name"),
        _ if name.len() > 63 => Some("the key is longer than 63 letters"),
        _ if !is_name(name) => {
            Some("the key has other letters than `a-z`, `A-Z`, `0-9` and, inside, `-`, `_`, `.`")
        }
        _ => None,
    }
}

fn label_value(text: &str, at: &At<'_>, sink: &mut Sink<'_>) {
    if text.len() > 63 {
        sink.error("too-long", at, "the value is longer than 63 letters");
    } else if !text.is_empty() && !is_name(text) {
        let message =
            "the value has other letters than `a-z`, `A-Z`, `0-9` and, inside, `-`, `_`, `.`";
        sink.error("bad-value", at, message);
    }
}

fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    text.bytes().all(inside) && end(text.bytes().next()) && end(text.bytes().next_back())
}

fn is_subdomain(text: &str) -> bool {
    let end = |byte: Option<u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let label = |label: &str| {
        let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        label.bytes().all(inside) && end(label.bytes().next()) && end(label.bytes().next_back())
    };
    text.len() <= 253 && text.split('.').all(label)
}
