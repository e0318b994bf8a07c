//! Reads DER with patience: what is wrong is noted, and what can be read is read.

/// Notes beyond which a certificate is only said to have more of them.
const MOST_NOTES: usize = 50;

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// What could not be read.
#[derive(Default)]
pub(super) struct Notes {
    notes: Vec<String>,
    more: usize,
}

impl Notes {
    pub(super) fn add(&mut self, note: String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(note);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn at(&mut self, offset: usize, note: impl AsRef<str>) {
        self.add(format!("byte {offset}: {}", note.as_ref()));
    }

    pub(super) fn into_vec(mut self) -> Vec<String> {
        if self.more > 0 {
            self.notes.push(format!("and {} problems more", self.more));
        }
        self.notes
    }
}

/// One value: tag, content, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Value<'der> {
    pub(super) tag: u8,
    pub(super) content: &'der [u8],
    /// With its tag and length.
    pub(super) raw: &'der [u8],
    /// Position of its first byte in the certificate.
    pub(super) offset: usize,
}

impl<'der> Value<'der> {
    /// Reads the values inside.
    pub(super) fn parts(&self) -> Reader<'der> {
        let header = self.raw.len() - self.content.len();
        Reader::new(self.content, self.offset + header)
    }

    /// Returns a small non-negative number.
    pub(super) fn number(&self) -> Option<u64> {
        if self.content.len() > 8 {
            return None;
        }
        Some(
            self.content
                .iter()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        )
    }

    /// Counts the bits of a non-negative number.
    pub(super) fn bit_length(&self) -> usize {
        let zeros = self.content.iter().take_while(|byte| **byte == 0).count();
        let rest = &self.content[zeros..];
        rest.first()
            .map_or(0, |first| rest.len() * 8 - first.leading_zeros() as usize)
    }

    /// Returns the bytes of a BIT STRING, without the count of unused bits.
    pub(super) fn bits(&self) -> &'der [u8] {
        self.content.get(1..).unwrap_or_default()
    }

    /// Writes an object identifier with dots; hex when it is none.
    pub(super) fn object_identifier(&self) -> String {
        dotted(self.content)
            .unwrap_or_else(|| format!("#{}", crate::certificate::hex(self.content)))
    }
}

fn dotted(content: &[u8]) -> Option<String> {
    let mut numbers: Vec<u128> = Vec::new();
    let mut number: u128 = 0;
    for byte in content {
        number = number.checked_mul(128)? | u128::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(number);
            number = 0;
        }
    }
    let complete = content.last().is_some_and(|byte| byte & 0x80 == 0);
    let first = *numbers.first().filter(|_| complete)?;
    let root = (first / 40).min(2);
    let head = [root, first - root * 40];
    let numbers = head.iter().chain(&numbers[1..]);
    Some(numbers.map(u128::to_string).collect::<Vec<_>>().join("."))
}

/// Reads value after value.
#[derive(Clone)]
pub(super) struct Reader<'der> {
    rest: &'der [u8],
    offset: usize,
}

impl<'der> Reader<'der> {
    pub(super) fn new(rest: &'der [u8], offset: usize) -> Self {
        Self { rest, offset }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads the next value of any kind. One that goes past the end is cut there.
    pub(super) fn next(&mut self, what: &str, notes: &mut Notes) -> Option<Value<'der>> {
        let (all, offset) = (self.rest, self.offset);
        let (Some(&tag), Some(&short)) = (all.first(), all.get(1)) else {
            self.rest = &[];
            notes.at(offset, format!("{what} is missing"));
            return None;
        };
        let mut header = 2;
        let mut length = usize::from(short);
        if short & 0x80 != 0 {
            let count = usize::from(short & 0x7f);
            let bytes = all.get(2..2 + count).unwrap_or_default();
            if count == 0 || count > 8 || bytes.len() != count || tag & 0x1f == 0x1f {
                self.rest = &[];
                notes.at(offset, format!("{what} has no DER length"));
                return None;
            }
            header += count;
            let size = bytes
                .iter()
                .fold(0_u64, |size, byte| size << 8 | u64::from(*byte));
            length = usize::try_from(size).unwrap_or(usize::MAX);
        }
        let left = all.len() - header;
        if length > left {
            notes.at(
                offset,
                format!("{what} should have {length} bytes, and {left} are left"),
            );
            length = left;
        }
        let (raw, rest) = all.split_at(header + length);
        self.rest = rest;
        self.offset += raw.len();
        Some(Value {
            tag,
            content: &raw[header..],
            raw,
            offset,
        })
    }

    /// Reads the next value, which must have a certain tag; one of another tag is passed over.
    pub(super) fn expect(&mut self, tag: u8, what: &str, notes: &mut Notes) -> Option<Value<'der>> {
        let value = self.next(what, notes)?;
        if value.tag != tag {
            let note = format!(
                "{what} has the tag {:#04x} instead of {tag:#04x}",
                value.tag
            );
            notes.at(value.offset, note);
            return None;
        }
        Some(value)
    }

    /// Reads the next value if it has a certain tag.
    pub(super) fn optional(&mut self, tag: u8, notes: &mut Notes) -> Option<Value<'der>> {
        if self.rest.first() != Some(&tag) {
            return None;
        }
        self.next("an optional part", notes)
    }

    /// Notes what follows the last expected value.
    pub(super) fn end(&self, what: &str, notes: &mut Notes) {
        if !self.rest.is_empty() {
            let count = self.rest.len();
            notes.at(
                self.offset,
                format!("{count} bytes follow the end of {what}"),
            );
        }
    }
}
