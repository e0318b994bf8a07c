//! The differences that are known, with their reasons: the one table of them.

use super::Case;

/// A kind of difference that is explained.
pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) reason: &'static str,
    pub(super) is_it: fn(&Case) -> bool,
}

pub(super) const CLASSES: [Class; 0] = [];
