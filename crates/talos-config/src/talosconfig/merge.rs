//! Bringing the contexts of one talosconfig into another.

use super::{Error, TalosConfig};

/// A name that was taken, and what the newcomer is called instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The name in the file that was merged in.
    pub from: String,
    /// The name in the result.
    pub to: String,
}

impl TalosConfig {
    /// Adds all contexts of another file, in the order of their names, and makes its current context current.
    ///
    /// A name that is taken by another context gets the suffix `-1`, or `-2` and so on, whatever is free; each such
    /// change is returned. The same context is not added a second time. A current context that the other file does not define leaves none current; none at all changes nothing.
    ///
    /// # Errors
    /// The text cannot be edited; nothing is changed then.
    pub fn merge(&mut self, other: &Self) -> Result<Vec<Renamed>, Error> {
        let mut merged = self.clone();
        let mut renamed = Vec::new();
        let mut current = None;
        for (name, context) in &other.contexts {
            let same = merged.contexts.get(name) == Some(context);
            let free = match same {
                true => name.clone(),
                false => free_name(name, |name| merged.contexts.contains_key(name)),
            };
            if !same {
                merged.put_context(&free, context)?;
            }
            if other.current() == Some(name) {
                current = Some(free.clone());
            }
            if free != *name {
                renamed.push(Renamed {
                    from: name.clone(),
                    to: free,
                });
            }
        }
        if other.current().is_some() {
            merged.write_current(current.as_deref().unwrap_or_default())?;
        }
        *self = merged;
        Ok(renamed)
    }
}

/// Returns the name, or the name with the first of `-1`, `-2` and so on that is not taken.
pub(crate) fn free_name(name: &str, taken: impl Fn(&str) -> bool) -> String {
    if !taken(name) {
        return name.to_string();
    }
    let mut number = 1;
    loop {
        let candidate = format!("{name}-{number}");
        if !taken(&candidate) {
            return candidate;
        }
        number += 1;
    }
}
