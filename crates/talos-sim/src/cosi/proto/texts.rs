//! Texts of a spec's YAML that are numbers, bytes or messages in its protobuf form.

use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use prost_reflect::{
    DynamicMessage, EnumDescriptor, FieldDescriptor, MapKey, MessageDescriptor, Value as Encoded,
};
use serde_json::Value;

use super::{flat, names};

/// Fills a message that has one meaning in all specs: times, durations, addresses, free content.
pub(super) fn well_known(descriptor: &MessageDescriptor, value: &Value) -> Option<DynamicMessage> {
    let mut filled = DynamicMessage::new(descriptor.clone());
    let mut set = |name: &str, value: Encoded| filled.set_field_by_name(name, value);
    match descriptor.full_name() {
        "google.protobuf.Struct" => set("fields", fields(descriptor, value)),
        "google.protobuf.Value" => content(&mut set, descriptor, value),
        "google.protobuf.Duration" => {
            let nanos = duration(value.as_str()?)?;
            set("seconds", Encoded::I64((nanos / NANOS).try_into().ok()?));
            set("nanos", Encoded::I32((nanos % NANOS).try_into().ok()?));
        }
        "google.protobuf.Timestamp" => {
            let nanos = value.as_str()?.parse::<Timestamp>().ok()?.as_nanosecond();
            set(
                "seconds",
                Encoded::I64(nanos.div_euclid(NANOS).try_into().ok()?),
            );
            set(
                "nanos",
                Encoded::I32(nanos.rem_euclid(NANOS).try_into().ok()?),
            );
        }
        "common.NetIP" => set("ip", address(value.as_str()?)),
        "common.NetIPPrefix" => {
            let (ip, length) = value.as_str()?.split_once('/').unwrap_or_default();
            set("ip", address(ip));
            set(
                "prefix_length",
                Encoded::I32(length.parse().unwrap_or_default()),
            );
        }
        "common.NetIPPort" => {
            let both: Option<SocketAddr> = value.as_str()?.parse().ok();
            let ip = both.map(|both| both.ip().to_string()).unwrap_or_default();
            set("ip", address(&ip));
            set(
                "port",
                Encoded::I32(both.map_or(0, |both| both.port().into())),
            );
        }
        "common.URL" => set("full_path", Encoded::String(url(value))),
        _ => return None,
    }
    Some(filled)
}

/// Finds the number of an enum's value by its text, which is the value's name without the common
/// beginning of all names, in small letters.
pub(super) fn number(descriptor: &EnumDescriptor, value: &Value) -> Option<i32> {
    let text = match value {
        Value::Number(number) => return number.as_i64()?.try_into().ok(),
        Value::Bool(flag) => flag.to_string(),
        Value::String(text) => text.clone(),
        _ => return None,
    };
    if let Some(number) = text.split_once('(').and_then(|(_, n)| n.strip_suffix(')')) {
        return number.parse().ok();
    }
    let wanted = flat(names::misspelled(&text).unwrap_or(&text));
    let values = || descriptor.values().map(|v| (flat(v.name()), v.number()));
    let exact = values().find(|(name, _)| *name == wanted);
    let ending = values().filter(|(name, _)| name.ends_with(&wanted));
    exact
        .or_else(|| ending.min_by_key(|(name, _)| name.len()))
        .map(|(_, number)| number)
}

/// Adds up flags written as `UP,RUNNING` or `permanent|noprefixroute`.
pub(super) fn flags(text: &str, bit: impl Fn(&str) -> Option<u32>) -> i128 {
    text.split([',', '|'])
        .filter(|flag| !flag.is_empty())
        .filter_map(|flag| bit(flag.trim()))
        .fold(0, |all, bit| all | i128::from(bit))
}

pub(super) fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Reads bytes: a list of numbers, a hardware address, base64 where PEM is meant, or the text.
///
/// Selectors of disks and volumes are compiled expressions, which do not follow from their text.
pub(super) fn bytes(field: &FieldDescriptor, value: &Value) -> Option<Vec<u8>> {
    let text = match value {
        Value::Array(items) => {
            let byte = |item: &Value| u8::try_from(item.as_u64()?).ok();
            return items.iter().map(byte).collect();
        }
        Value::String(text) => text,
        _ => return None,
    };
    let name = field.name();
    if name.ends_with("_addr") || name.ends_with("_address") {
        let byte = |pair: &str| u8::from_str_radix(pair, 16).ok();
        return text.split(':').map(byte).collect();
    }
    if name.ends_with("match") || name.ends_with("selector") {
        return None;
    }
    let in_base64 = field.parent_message().name().starts_with("PEM") || name == "tlsca";
    let decoded = in_base64.then(|| BASE64_STANDARD.decode(text).ok());
    Some(
        decoded
            .flatten()
            .unwrap_or_else(|| text.clone().into_bytes()),
    )
}

/// Reads a duration as Go writes it, such as `1h0m0.5s`, in nanoseconds.
fn duration(text: &str) -> Option<i128> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut total = 0f64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let count: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "h" => 3600e9,
            "m" => 60e9,
            "s" => 1e9,
            "ms" => 1e6,
            "us" | "µs" => 1e3,
            "ns" => 1.0,
            _ => return None,
        };
        total += count * unit;
        rest = &rest[end..];
    }
    let total = total.round() as i128;
    Some(if negative { -total } else { total })
}

/// Encodes an address as 4 or 16 bytes, or none.
fn address(text: &str) -> Encoded {
    let bytes = match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(v4)) => v4.octets().to_vec(),
        Ok(IpAddr::V6(v6)) => v6.octets().to_vec(),
        Err(_) => Vec::new(),
    };
    Encoded::Bytes(bytes.into())
}

/// Writes a URL that Go shows by its parts.
fn url(value: &Value) -> String {
    let part = |name: &str| value[name].as_str().unwrap_or_default();
    match value {
        Value::String(text) => text.clone(),
        _ => format!("{}://{}{}", part("scheme"), part("host"), part("path")),
    }
}

fn fields(descriptor: &MessageDescriptor, value: &Value) -> Encoded {
    let field = descriptor.get_field_by_name("fields");
    let entry = field.and_then(|field| field.kind().as_message().cloned());
    let inner = entry.and_then(|e| e.map_entry_value_field().kind().as_message().cloned());
    let (Some(inner), Some(map)) = (inner, value.as_object()) else {
        return Encoded::Map(Default::default());
    };
    let filled = map.iter().filter_map(|(key, value)| {
        let value = well_known(&inner, value)?;
        Some((MapKey::String(key.clone()), Encoded::Message(value)))
    });
    Encoded::Map(filled.collect())
}

/// Fills the one field of a `google.protobuf.Value` that suits the content.
fn content(set: &mut impl FnMut(&str, Encoded), descriptor: &MessageDescriptor, value: &Value) {
    let inner = |name: &str| {
        let field = descriptor.get_field_by_name(name)?;
        field.kind().as_message().cloned()
    };
    match value {
        Value::Null => set("null_value", Encoded::EnumNumber(0)),
        Value::Bool(flag) => set("bool_value", Encoded::Bool(*flag)),
        Value::Number(number) => set(
            "number_value",
            Encoded::F64(number.as_f64().unwrap_or_default()),
        ),
        Value::String(text) => set("string_value", Encoded::String(text.clone())),
        Value::Object(_) => {
            let filled = inner("struct_value").and_then(|of| well_known(&of, value));
            if let Some(filled) = filled {
                set("struct_value", Encoded::Message(filled));
            }
        }
        Value::Array(items) => {
            let Some(list) = inner("list_value") else {
                return;
            };
            let items = items.iter().filter_map(|item| well_known(descriptor, item));
            let items = items.map(Encoded::Message).collect();
            let mut filled = DynamicMessage::new(list);
            filled.set_field_by_name("values", Encoded::List(items));
            set("list_value", Encoded::Message(filled));
        }
    }
}

const NANOS: i128 = 1_000_000_000;
