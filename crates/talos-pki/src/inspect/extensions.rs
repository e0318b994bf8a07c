//! Reads extensions: those that are known into lines, the rest as hex.

use std::collections::HashSet;

use super::names::{general_name, general_names, string};
use super::read::{self, Notes, Reader, Value};
use super::{AlternativeName, ExtensionDetail, Inspection};
use crate::certificate::hex;
use crate::oid;

/// Names of the bits of keyUsage, the first being the highest.
const KEY_USES: [&str; 9] = [
    "digitalSignature",
    "contentCommitment",
    "keyEncipherment",
    "dataEncipherment",
    "keyAgreement",
    "keyCertSign",
    "cRLSign",
    "encipherOnly",
    "decipherOnly",
];

pub(super) fn read_extensions(into: &mut Inspection, outer: Value<'_>, notes: &mut Notes) {
    let Some(list) = outer
        .parts()
        .expect(read::SEQUENCE, "the extensions", notes)
    else {
        return;
    };
    let mut list = list.parts();
    let mut seen = HashSet::new();
    while !list.is_empty() {
        let Some(entry) = list.expect(read::SEQUENCE, "an extension", notes) else {
            continue;
        };
        let mut parts = entry.parts();
        let Some(id) = parts.expect(read::OBJECT_IDENTIFIER, "the kind of an extension", notes)
        else {
            continue;
        };
        let id = id.object_identifier();
        let critical = parts.optional(read::BOOLEAN, notes);
        let content = parts.expect(
            read::OCTET_STRING,
            &format!("the content of extension {id}"),
            notes,
        );
        let again = !seen.insert(id.clone());
        if again {
            notes.at(
                entry.offset,
                format!("extension {id} stands more than once"),
            );
        }
        let mut extension = ExtensionDetail {
            name: oid::extension(&id).map(str::to_owned),
            critical: critical.is_some_and(|value| value.content != [0]),
            id,
            ..ExtensionDetail::default()
        };
        if let Some(content) = content {
            let reader = content.parts();
            match decode(&extension.id, reader, notes) {
                Some(Decoded::Lines(lines)) => extension.value = lines,
                Some(Decoded::Names(names)) => {
                    extension.value = names.iter().map(line).collect();
                    if extension.id == "2.5.29.17" && !again {
                        into.names = names;
                    }
                }
                Some(Decoded::SubjectKey(key)) => {
                    into.subject_key_id.get_or_insert_with(|| key.clone());
                    extension.value = vec![key];
                }
                Some(Decoded::AuthorityKey(key, lines)) => {
                    into.authority_key_id = into.authority_key_id.take().or(key);
                    extension.value = lines;
                }
                None => extension.hex = Some(hex(content.content)),
            }
        }
        into.extensions.push(extension);
    }
}

enum Decoded {
    Lines(Vec<String>),
    Names(Vec<AlternativeName>),
    SubjectKey(String),
    AuthorityKey(Option<String>, Vec<String>),
}

fn line(name: &AlternativeName) -> String {
    format!("{}:{}", name.kind, name.value)
}

fn decode(id: &str, mut reader: Reader<'_>, notes: &mut Notes) -> Option<Decoded> {
    let what = oid::extension(id)?;
    let sequence = |reader: &mut Reader<'_>, notes: &mut Notes| {
        reader
            .expect(read::SEQUENCE, what, notes)
            .map(|value| value.content.len())
    };
    let mut ahead = reader.clone();
    let lines = match id {
        "2.5.29.14" => {
            let value = reader.expect(read::OCTET_STRING, what, notes)?;
            return Some(Decoded::SubjectKey(hex(value.content)));
        }
        "2.5.29.15" => key_usage(reader.expect(read::BIT_STRING, what, notes)?),
        "2.5.29.17" | "2.5.29.18" => {
            let value = reader.expect(read::SEQUENCE, what, notes)?;
            return Some(Decoded::Names(general_names(value.parts(), notes)));
        }
        "2.5.29.19" => {
            let mut parts = reader.expect(read::SEQUENCE, what, notes)?.parts();
            let is_ca = parts.optional(read::BOOLEAN, notes);
            let is_ca = is_ca.is_some_and(|value| value.content != [0]);
            let length = parts
                .optional(read::INTEGER, notes)
                .and_then(|value| value.number());
            let length = length.map(|length| format!("path length {length}"));
            let text = if is_ca { "CA:TRUE" } else { "CA:FALSE" };
            std::iter::once(text.to_owned()).chain(length).collect()
        }
        "2.5.29.30" => constraints(reader.expect(read::SEQUENCE, what, notes)?, notes),
        "2.5.29.31" | "2.5.29.46" => locations(reader.expect(read::SEQUENCE, what, notes)?),
        "2.5.29.32" => {
            let parts = reader.expect(read::SEQUENCE, what, notes)?.parts();
            each(parts, what, notes, |value, notes| {
                let policy = value.parts().expect(read::OBJECT_IDENTIFIER, what, notes);
                policy.map(|policy| policy.object_identifier())
            })
        }
        "2.5.29.35" => {
            let mut parts = reader.expect(read::SEQUENCE, what, notes)?.parts();
            let key = parts.optional(0x80, notes).map(|value| hex(value.content));
            let issuer = parts.optional(0xa1, notes);
            let issuer = issuer.map(|value| general_names(value.parts(), notes));
            let serial = parts.optional(0x82, notes).map(|value| hex(value.content));
            let mut lines: Vec<String> = key.clone().into_iter().collect();
            lines.extend(
                issuer
                    .iter()
                    .flatten()
                    .map(|name| format!("issuer {}", line(name))),
            );
            lines.extend(serial.map(|serial| format!("serial {serial}")));
            return Some(Decoded::AuthorityKey(key, lines));
        }
        "2.5.29.37" => {
            let parts = reader.expect(read::SEQUENCE, what, notes)?.parts();
            each(parts, what, notes, |value, _| {
                let purpose = value.object_identifier();
                Some(oid::purpose(&purpose).map_or(purpose, str::to_owned))
            })
        }
        "1.3.6.1.5.5.7.1.1" | "1.3.6.1.5.5.7.1.11" => {
            let parts = reader.expect(read::SEQUENCE, what, notes)?.parts();
            each(parts, what, notes, access)
        }
        "2.16.840.1.113730.1.13" => vec![string(reader.next(what, notes)?)],
        _ => return None,
    };
    // A known extension that says nothing readable is shown as it is.
    if lines.is_empty() && sequence(&mut ahead, notes).is_some_and(|length| length > 0) {
        return None;
    }
    Some(Decoded::Lines(lines))
}

fn each<'der>(
    mut reader: Reader<'der>,
    what: &str,
    notes: &mut Notes,
    read: impl Fn(Value<'der>, &mut Notes) -> Option<String>,
) -> Vec<String> {
    let mut lines = Vec::new();
    while !reader.is_empty() {
        let value = reader.next(what, notes);
        lines.extend(value.and_then(|value| read(value, notes)));
    }
    lines
}

fn key_usage(bits: Value<'_>) -> Vec<String> {
    let bytes = bits.bits();
    let is_set = |at: usize| {
        bytes
            .get(at / 8)
            .is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0)
    };
    let names = KEY_USES.iter().enumerate().filter(|(at, _)| is_set(*at));
    names.map(|(_, name)| (*name).to_owned()).collect()
}

fn access(value: Value<'_>, notes: &mut Notes) -> Option<String> {
    let mut parts = value.parts();
    let method = parts.expect(read::OBJECT_IDENTIFIER, "a method of access", notes)?;
    let place = general_name(parts.next("a place of access", notes)?, notes);
    let method = match method.object_identifier().as_str() {
        "1.3.6.1.5.5.7.48.1" => "OCSP".to_owned(),
        "1.3.6.1.5.5.7.48.2" => "issuer".to_owned(),
        other => other.to_owned(),
    };
    Some(format!("{method} {}", line(&place)))
}

fn constraints(value: Value<'_>, notes: &mut Notes) -> Vec<String> {
    let mut parts = value.parts();
    let mut lines = Vec::new();
    for (tag, word) in [(0xa0, "permitted"), (0xa1, "excluded")] {
        let Some(subtrees) = parts.optional(tag, notes) else {
            continue;
        };
        lines.extend(each(
            subtrees.parts(),
            "a constraint",
            notes,
            |subtree, notes| {
                let base = subtree.parts().next("a constraint", notes)?;
                Some(format!("{word} {}", line(&general_name(base, notes))))
            },
        ));
    }
    lines
}

/// Finds the URIs of distribution points: each stands in the third level below.
fn locations(value: Value<'_>) -> Vec<String> {
    let mut ignored = Notes::default();
    let mut lines = Vec::new();
    let mut points = value.parts();
    while let (false, Some(point)) = (points.is_empty(), points.next("", &mut ignored)) {
        let place = point.parts().optional(0xa0, &mut ignored);
        let full = place.and_then(|place| place.parts().optional(0xa0, &mut ignored));
        let names = full.map(|full| general_names(full.parts(), &mut ignored));
        lines.extend(names.iter().flatten().map(line));
    }
    lines
}
