//! Versions as tags of images spell them.

/// A version of two or three numbers, and whatever marks an unfinished one.
pub(super) struct Version<'a> {
    pub(super) major: u64,
    pub(super) minor: u64,
    pub(super) patch: Option<u64>,
    /// Empty, or a text such as `-rc.1`.
    pub(super) suffix: &'a str,
}

impl<'a> Version<'a> {
    /// Reads `1.13`, `1.13.9` or `1.13.0-rc.1`, without a leading `v`.
    ///
    /// What a plus sign would add is none of it: no tag has one.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (numbers, suffix) = text.split_at(text.find('-').unwrap_or(text.len()));
        let numbers: Vec<u64> = numbers.split('.').map(number).collect::<Option<_>>()?;
        let is_identifier = |part: &str| {
            let is_known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            !part.is_empty() && part.bytes().all(is_known)
        };
        let is_suffix = suffix
            .strip_prefix('-')
            .is_none_or(|suffix| suffix.split('.').all(is_identifier));
        let (major, minor, patch) = match numbers[..] {
            [major, minor] if suffix.is_empty() => (major, minor, None),
            [major, minor, patch] if is_suffix => (major, minor, Some(patch)),
            _ => return None,
        };
        Some(Self {
            major,
            minor,
            patch,
            suffix,
        })
    }
}

/// Reads a number that could be one of a version: digits, without a zero before others.
fn number(text: &str) -> Option<u64> {
    let is_plain =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse::<u32>().ok().filter(|_| is_plain).map(u64::from)
}
