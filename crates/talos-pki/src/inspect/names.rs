//! Reads subjects, issuers and the entries of subjectAltName.

use std::net::IpAddr;

use super::read::{self, Notes, Reader, Value};
use super::{AlternativeName, Attribute, DistinguishedName};
use crate::certificate::hex;
use crate::oid;

pub(super) fn read_name(value: Value<'_>, what: &str, notes: &mut Notes) -> DistinguishedName {
    let mut parts = Vec::new();
    let mut sets = value.parts();
    while !sets.is_empty() {
        let Some(set) = sets.expect(read::SET, what, notes) else {
            continue;
        };
        let mut members = set.parts();
        let mut attributes = Vec::new();
        while !members.is_empty() {
            let member = members.expect(read::SEQUENCE, what, notes);
            attributes.extend(member.and_then(|member| attribute(member, what, notes)));
        }
        parts.push(attributes);
    }
    let part = |attributes: &Vec<Attribute>| {
        let pairs = attributes
            .iter()
            .map(|pair| format!("{}={}", pair.kind, pair.value));
        pairs.collect::<Vec<_>>().join(" + ")
    };
    let text = parts.iter().map(part).collect::<Vec<_>>().join(", ");
    DistinguishedName { text, parts }
}

fn attribute(member: Value<'_>, what: &str, notes: &mut Notes) -> Option<Attribute> {
    let mut pair = member.parts();
    let kind = pair.expect(read::OBJECT_IDENTIFIER, what, notes)?;
    let value = pair.next(what, notes)?;
    let kind = kind.object_identifier();
    Some(Attribute {
        kind: oid::attribute(&kind).map_or(kind, str::to_owned),
        value: string(value),
    })
}

/// Reads a string of any of the kinds that certificates have; `#` and hex for everything else.
pub(super) fn string(value: Value<'_>) -> String {
    let bytes = value.content;
    let read = match value.tag & 0x3f {
        0x0c | 0x12 | 0x13 | 0x16 | 0x1a => std::str::from_utf8(bytes).ok().map(str::to_owned),
        // T61, in practice Latin-1.
        0x14 => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        0x1e if bytes.len().is_multiple_of(2) => {
            let units = bytes
                .chunks_exact(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            char::decode_utf16(units)
                .collect::<Result<String, _>>()
                .ok()
        }
        _ => None,
    };
    read.map_or_else(|| format!("#{}", hex(value.raw)), |text| printable(&text))
}

/// Writes text without what would act on a terminal.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() || ('\u{202a}'..='\u{202e}').contains(&letter) {
            out.extend(letter.escape_unicode());
        } else {
            out.push(letter);
        }
    }
    out
}

fn ascii(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => printable(text),
        Err(_) => format!("#{}", hex(bytes)),
    }
}

/// Reads one GeneralName.
pub(super) fn general_name(value: Value<'_>, notes: &mut Notes) -> AlternativeName {
    let (kind, text) = match value.tag & 0x1f {
        0 => ("otherName", other_name(value, notes)),
        1 => ("email", ascii(value.content)),
        2 => {
            if !value.content.is_ascii() {
                notes.at(
                    value.offset,
                    "a DNS name is not ASCII; IDNs must be A-labels (xn--)",
                );
            }
            ("DNS", ascii(value.content))
        }
        3 => ("x400Address", format!("#{}", hex(value.content))),
        4 => {
            let name = value
                .parts()
                .expect(read::SEQUENCE, "a directory name", notes);
            let name = name.map(|name| read_name(name, "a directory name", notes).text);
            ("directoryName", name.unwrap_or_default())
        }
        5 => ("ediPartyName", format!("#{}", hex(value.content))),
        6 => ("URI", ascii(value.content)),
        7 => ("IP", address(value, notes)),
        8 => ("registeredID", value.object_identifier()),
        other => {
            notes.at(value.offset, format!("a name has the unknown kind {other}"));
            ("unknown", format!("#{}", hex(value.raw)))
        }
    };
    AlternativeName {
        kind: kind.to_owned(),
        value: text,
    }
}

fn other_name(value: Value<'_>, notes: &mut Notes) -> String {
    let mut parts = value.parts();
    let kind = parts.expect(read::OBJECT_IDENTIFIER, "the kind of an otherName", notes);
    let content = parts.optional(0xa0, notes);
    let content = content.and_then(|outer| outer.parts().next("the value of an otherName", notes));
    let kind = kind.map_or_else(|| "?".to_owned(), |kind| kind.object_identifier());
    format!("{kind}: {}", content.map(string).unwrap_or_default())
}

/// Reads an address, or an address and mask as constraints have them.
fn address(value: Value<'_>, notes: &mut Notes) -> String {
    let one = |bytes: &[u8]| match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    };
    let bytes = value.content;
    let (base, mask) = bytes.split_at(bytes.len() / 2);
    match (one(bytes), one(base), one(mask)) {
        (_, Some(base), Some(mask)) if matches!(bytes.len(), 8 | 32) => format!("{base}/{mask}"),
        (Some(address), ..) => address.to_string(),
        _ => {
            notes.at(
                value.offset,
                format!("an address has {} bytes", bytes.len()),
            );
            format!("#{}", hex(bytes))
        }
    }
}

/// Reads a list of GeneralName.
pub(super) fn general_names(mut reader: Reader<'_>, notes: &mut Notes) -> Vec<AlternativeName> {
    let mut names = Vec::new();
    while !reader.is_empty() {
        let value = reader.next("a name", notes);
        names.extend(value.map(|value| general_name(value, notes)));
    }
    names
}
