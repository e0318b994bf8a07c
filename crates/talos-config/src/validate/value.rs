//! Values with a syntax of their own: durations, addresses, sizes and others.

/// Returns the boolean that a plain word means to the decoder of Talos.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "y" | "on" | "true" => Some(true),
        "no" | "n" | "off" | "false" => Some(false),
        _ => None,
    }
}
