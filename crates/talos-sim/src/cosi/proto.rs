//! The protobuf form of a spec, derived from its value and the contract's descriptors.
//!
//! Talos keeps specs as Go structs and encodes them twice: as YAML for people and as protobuf for
//! programs. The names of both forms come from the same fields, so one form follows from the other
//! but for the exceptions in [`names`], and for texts such as addresses, durations and enums.

mod names;
mod texts;

use std::collections::HashMap;
use std::sync::LazyLock;

use prost::Message as _;
use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor,
};
use serde_json::{Map, Value};

use super::definitions;

use names::Flags;

/// Encodes a spec of a resource type; empty where the type has no protobuf form.
pub(crate) fn encode(kind: &str, spec: &Value) -> Vec<u8> {
    definitions::proto_message(kind)
        .and_then(|name| POOL.get_message_by_name(name))
        .map(|descriptor| message(&descriptor, spec).encode_to_vec())
        .unwrap_or_default()
}

/// Fills a message from a value; what does not fit is left out.
fn message(descriptor: &MessageDescriptor, value: &Value) -> DynamicMessage {
    if let Some(known) = texts::well_known(descriptor, value) {
        return known;
    }
    let mut filled = DynamicMessage::new(descriptor.clone());
    let fields: Vec<FieldDescriptor> = descriptor.fields().collect();
    let keys = value.as_object().map(|map| by_name(descriptor, map));
    for field in &fields {
        let found = match &keys {
            Some(keys) => keys.get(&flat(field.name())).copied(),
            None => None,
        };
        // A message of one field stands for that field alone, such as a list of manifests.
        let found = found.or_else(|| (fields.len() == 1).then_some(value));
        if let Some(encoded) = found.and_then(|found| any(field, found)) {
            filled.set_field(field, encoded);
        }
    }
    filled
}

/// Finds a mapping's entries by the flattened names of the fields they belong to.
fn by_name<'a>(
    descriptor: &MessageDescriptor,
    map: &'a Map<String, Value>,
) -> HashMap<String, &'a Value> {
    map.iter()
        .map(|(key, value)| {
            let name = names::field(descriptor.name(), key).unwrap_or(key);
            (flat(name), value)
        })
        .collect()
}

fn any(field: &FieldDescriptor, value: &Value) -> Option<prost_reflect::Value> {
    if value.is_null() {
        return None;
    }
    if field.is_map() {
        return map(field, value);
    }
    if field.cardinality() != Cardinality::Repeated {
        return one(field, value);
    }
    let items = match value {
        Value::Array(items) => items.iter().filter_map(|item| one(field, item)).collect(),
        Value::Object(map) => map.iter().filter_map(|pair| entry(field, pair)).collect(),
        single => one(field, single).into_iter().collect(),
    };
    Some(prost_reflect::Value::List(items))
}

/// Encodes what is a mapping in YAML and a list of names with one value each in protobuf.
fn entry(field: &FieldDescriptor, pair: (&String, &Value)) -> Option<prost_reflect::Value> {
    let Kind::Message(descriptor) = field.kind() else {
        return None;
    };
    let name = descriptor.get_field_by_name("name")?;
    let status = descriptor.get_field_by_name("status")?;
    let mut filled = DynamicMessage::new(descriptor);
    filled.set_field(&name, prost_reflect::Value::String(pair.0.clone()));
    filled.set_field(&status, one(&status, pair.1)?);
    Some(prost_reflect::Value::Message(filled))
}

fn map(field: &FieldDescriptor, value: &Value) -> Option<prost_reflect::Value> {
    let Kind::Message(entry) = field.kind() else {
        return None;
    };
    let inner = entry.map_entry_value_field();
    let entries = value.as_object()?.iter().filter_map(|(key, value)| {
        let encoded = any(&inner, value)?;
        Some((MapKey::String(key.clone()), encoded))
    });
    Some(prost_reflect::Value::Map(entries.collect()))
}

fn one(field: &FieldDescriptor, value: &Value) -> Option<prost_reflect::Value> {
    use prost_reflect::Value as Encoded;
    Some(match field.kind() {
        Kind::Message(descriptor) => Encoded::Message(message(&descriptor, value)),
        Kind::Enum(descriptor) => Encoded::EnumNumber(texts::number(&descriptor, value)?),
        Kind::Bool => Encoded::Bool(texts::flag(value)?),
        Kind::String => Encoded::String(texts::plain(value)?),
        Kind::Bytes => Encoded::Bytes(texts::bytes(field, value)?.into()),
        Kind::Double => Encoded::F64(value.as_f64()?),
        Kind::Float => Encoded::F32(value.as_f64()? as f32),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            Encoded::I32(integer(field, value)?.try_into().ok()?)
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            Encoded::I64(integer(field, value)?.try_into().ok()?)
        }
        Kind::Uint32 | Kind::Fixed32 => Encoded::U32(integer(field, value)?.try_into().ok()?),
        Kind::Uint64 | Kind::Fixed64 => Encoded::U64(integer(field, value)?.try_into().ok()?),
    })
}

/// Reads a number, or a set of flags that the field keeps as a number.
fn integer(field: &FieldDescriptor, value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from)),
        Value::String(text) => text.parse().ok().or_else(|| {
            let flags = names::flags(field.parent_message().name(), field.name())?;
            Some(texts::flags(text, |flag| bit(flags, flag)))
        }),
        _ => None,
    }
}

fn bit(flags: Flags, flag: &str) -> Option<u32> {
    match flags {
        Flags::Bits(bits) => bits
            .iter()
            .find(|(name, _)| *name == flag)
            .map(|(_, bit)| *bit),
        Flags::Enum(name) => {
            let values = POOL.get_enum_by_name(name)?;
            let bit = texts::number(&values, &Value::String(flag.to_owned()))?;
            u32::try_from(bit).ok()
        }
    }
}

/// A name without the differences between Go, YAML and protobuf.
fn flat(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(talos_api::DESCRIPTOR_SET).expect("the build wrote a valid set")
});

#[cfg(test)]
mod tests;
