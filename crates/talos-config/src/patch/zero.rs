//! Which values are the same as an absent one to Talos, so that they do not overwrite.

use serde_json::Value;

use crate::schema::{Field, Shape};

/// Returns whether a scalar is zero: 0 or an empty text; booleans always count.
///
/// With `compat` also a text that stands for zero: to the official tool `accept`, `tcp` or `0s` in a patch say nothing.
pub(super) fn is_zero(value: &Value, field: &Field, compat: bool) -> bool {
    match value {
        // An empty certificate replaces one, as any bytes do.
        Value::String(text) if field.of.starts_with("bytes") => text.is_empty() && field.optional,
        Value::String(text) => text.is_empty() || (compat && stands_for_zero(text, field)),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Null => true,
        _ => false,
    }
}

fn stands_for_zero(text: &str, field: &Field) -> bool {
    if field.shape != Shape::Either {
        return false;
    }
    let word = match field.of {
        "int64(Duration)" | "uint64(DiskSize)" => {
            return text.contains('0') && !text.contains(|c| matches!(c, '1'..='9'));
        }
        "text(DefaultAction)" => "accept",
        "text(DNSProtocol)" => "do53",
        "text(EncryptionProviderType)" | "text(FilesystemType)" => "none",
        "text(LVMLogicalVolumeType)" => "linear",
        "text(MDLevel)" => "raid1",
        "text(MDMetadata)" => "1.0",
        "text(RoutingTable)" | "text(RoutingRuleAction)" => "unspec",
        _ => return false,
    };
    text.eq_ignore_ascii_case(word)
}
