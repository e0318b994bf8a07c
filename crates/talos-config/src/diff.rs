//! The difference of two texts, as people read it.

use similar::TextDiff;

/// Returns the unified difference of two texts with three lines around each change; empty if there is none.
pub fn unified(old: &str, new: &str, old_name: &str, new_name: &str) -> String {
    if old == new {
        return String::new();
    }
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(3)
        .header(old_name, new_name)
        .to_string()
}
