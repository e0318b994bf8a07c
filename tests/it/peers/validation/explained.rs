//! Differences between the two judgements that are meant, with the reason.

/// A difference that is meant.
pub(super) struct Explanation {
    /// Why it is meant.
    pub(super) reason: &'static str,
    /// Texts that are all in the message of the side that refuses.
    pub(super) has: &'static [&'static str],
}

impl Explanation {
    /// Returns whether a message is of this difference.
    pub(super) fn is_of(&self, message: &str) -> bool {
        self.has.iter().all(|text| message.contains(text))
    }
}

/// What the official library refuses and is accepted here: nothing so far.
pub(super) const MISSED: &[Explanation] = &[];

/// What is refused here and the official library accepts.
pub(super) const TOO_STRICT: &[Explanation] = &[
    Explanation {
        reason: "1.11 cuts off the fraction of a number where a whole one is needed",
        has: &["bad-value", "is not a whole number"],
    },
    Explanation {
        reason: "1.11 cuts off the fraction of a port",
        has: &["bad-value", "is not a port or a range of ports"],
    },
    Explanation {
        reason: "1.11 reads an empty mapping as no size at all",
        has: &["wrong-type", "expected text, found a mapping"],
    },
    Explanation {
        reason: "the library takes a few odd texts, such as an IPv6 prefix, for references of images",
        has: &[
            "bad-value ContainerConfig",
            "a reference of an image is expected",
        ],
    },
];
