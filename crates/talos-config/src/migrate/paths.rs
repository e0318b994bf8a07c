//! Sets of paths, of which is found at once what is above and below a path.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::yaml::Step;

/// A set of paths.
#[derive(Default)]
pub(super) struct Paths {
    /// Sorted, so that what is below a path comes right after it.
    all: BTreeSet<Vec<Step>>,
}

impl Paths {
    pub(super) fn push(&mut self, path: Vec<Step>) {
        self.all.insert(path);
    }

    /// Returns whether a path or one above it is in the set.
    pub(super) fn cover(&self, path: &[Step]) -> bool {
        (0..=path.len()).any(|length| self.all.contains(&path[..length]))
    }

    /// Returns whether a path or one below it is in the set.
    pub(super) fn reach_into(&self, path: &[Step]) -> bool {
        let from = (Bound::Included(path), Bound::Unbounded);
        self.all
            .range::<[Step], _>(from)
            .next()
            .is_some_and(|first| first.starts_with(path))
    }

    /// Returns the paths in order, without those below others.
    pub(super) fn topmost(&self) -> Vec<&[Step]> {
        let mut paths: Vec<&[Step]> = self.all.iter().map(Vec::as_slice).collect();
        paths.dedup_by(|path, above| path.starts_with(above));
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_and_below_a_path_is_found() {
        let path = |text: &str| -> Vec<Step> { text.split('.').map(Step::from).collect() };
        let mut paths = Paths::default();
        for text in ["a.b.c", "a.b", "a.bc.d", "c"] {
            paths.push(path(text));
        }
        for (text, covered, reached) in [
            ("a", false, true),
            ("a.b", true, true),
            ("a.b.x", true, false),
            ("a.bc", false, true),
            ("a.bc.e", false, false),
            ("b", false, false),
            ("c", true, true),
            ("d", false, false),
        ] {
            let found = (paths.cover(&path(text)), paths.reach_into(&path(text)));
            assert_eq!(found, (covered, reached), "{text}");
        }
        assert_eq!(paths.topmost(), [path("a.b"), path("a.bc.d"), path("c")]);
    }
}
