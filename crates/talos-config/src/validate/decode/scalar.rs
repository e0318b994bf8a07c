//! Whether a scalar is one of the type a field has.

use std::borrow::Cow;

use serde_json::{Number, Value};

use crate::mask::MASK;
use crate::schema::{Field, Shape};
use crate::validate::value::{self, Url};

/// Checks a scalar; the error says what it is not, and never shows it.
pub(crate) fn check(scalar: &Value, field: &Field) -> Result<(), Cow<'static, str>> {
    match field.shape {
        Shape::Text => text(scalar, field.of),
        Shape::Bool => {
            let fits = match scalar {
                Value::Bool(_) => true,
                Value::String(text) => {
                    !text.eq_ignore_ascii_case("true")
                        && !text.eq_ignore_ascii_case("false")
                        && value::boolean(text).is_some()
                }
                _ => false,
            };
            told(fits, "is not `true` or `false`")
        }
        Shape::Number => number(scalar, field.of),
        Shape::Url => Url::parse(&read(scalar)).map(drop).map_err(Cow::Borrowed),
        Shape::Either => either(scalar, field.of),
        Shape::Struct | Shape::Free | Shape::List | Shape::Map => Ok(()),
    }
}

fn told(fits: bool, message: &'static str) -> Result<(), Cow<'static, str>> {
    match fits {
        true => Ok(()),
        false => Err(Cow::Borrowed(message)),
    }
}

/// Returns the scalar as the text that stands for it.
fn read(scalar: &Value) -> Cow<'_, str> {
    match scalar {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(other.to_string()),
    }
}

/// Checks text fields: any scalar is text, but certificates and keys are base64, and hardware addresses hexadecimal.
fn text(scalar: &Value, of: &str) -> Result<(), Cow<'static, str>> {
    let text = read(scalar);
    match of {
        "bytes(HardwareAddr)" => told(
            is_hexadecimal(&text),
            "is not hexadecimal, such as `00:11:22:33:44:55`",
        ),
        "bytes(Key)" if text == MASK => Ok(()),
        "bytes" | "bytes(Key)" => told(value::base64(&text).is_some(), "is not base64"),
        _ => Ok(()),
    }
}

/// Checks numbers against the range of their type.
fn number(scalar: &Value, of: &str) -> Result<(), Cow<'static, str>> {
    let Some(number) = scalar.as_number().and_then(whole) else {
        return Err(Cow::Borrowed("is not a whole number"));
    };
    let (least, most): (i128, i128) = match of {
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        "uint" | "uint64" => (0, u64::MAX.into()),
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN.into(), i64::MAX.into()),
    };
    match (least..=most).contains(&number) {
        true => Ok(()),
        false => Err(format!("is not between {least} and {most}").into()),
    }
}

/// Returns the number if it is a whole one, in whatever form.
fn whole(number: &Number) -> Option<i128> {
    number.as_i128().or_else(|| {
        let float = number.as_f64()?;
        #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
        (float.fract() == 0.0 && float.abs() < 1e19).then_some(float as i128)
    })
}

/// Checks values with a syntax of their own.
fn either(scalar: &Value, of: &str) -> Result<(), Cow<'static, str>> {
    if of.starts_with("uint32(") {
        return number(scalar, "uint32");
    }
    let text = read(scalar);
    let inner = of
        .split_once('(')
        .map_or(of, |(_, inner)| inner.trim_end_matches(')'));
    let fits = match inner {
        "Duration" => {
            let fits = match scalar {
                Value::String(text) => value::duration(text).is_some(),
                Value::Number(number) => number.as_i128() == Some(0),
                _ => false,
            };
            return told(fits, "is not a duration such as `1h30m` or `10s`");
        }
        "Addr" => {
            let fits = text.is_empty() || value::address(&text).is_some();
            return told(fits, "is not an IP address");
        }
        "Prefix" => {
            let fits = text.is_empty() || value::prefix(&text).is_some();
            return told(
                fits,
                "is not an IP address with the length of a prefix, such as `10.0.0.0/24`",
            );
        }
        "AddrPort" => {
            let fits = text.is_empty() || value::address_port(&text).is_some();
            return told(
                fits,
                "is not an IP address with a port, such as `10.0.0.1:51820`",
            );
        }
        "ByteSize" => is_byte_size(&text),
        "Size" => match text.contains('%') {
            true => is_percentage(&text),
            false => is_byte_size(&text),
        },
        "DiskSize" => value::size(&text).is_some(),
        "SizeMatch" => is_size_match(&text),
        "PortRange" => {
            return told(
                is_port_range(scalar),
                "is not a port or a range of ports, such as `80` or `1024-2048`",
            );
        }
        "RoutingTable" => {
            let number =
                text.parse::<u8>().is_ok_and(|table| table > 0) && !text.starts_with(['0', '+']);
            // These three have names only.
            let named = ["253", "254", "255"].contains(&&*text);
            let word = ["unspec", "default", "main", "local"]
                .iter()
                .any(|word| text.eq_ignore_ascii_case(word));
            return told(
                (number && !named) || word,
                "is not a routing table: `main`, `local`, `default` or a number from 1 to 252",
            );
        }
        _ => return word(&text, inner),
    };
    told(fits, "is not a size such as `10GiB`")
}

/// Checks values that are one of some words.
fn word(text: &str, of: &str) -> Result<(), Cow<'static, str>> {
    let words: &[&str] = match of {
        "ADLACPActive" => &["off", "on"],
        "ADSelect" => &["stable", "bandwidth", "count"],
        "ARPAllTargets" => &["any", "all"],
        "ARPValidate" => &[
            "none",
            "active",
            "backup",
            "all",
            "filter",
            "filter-active",
            "filter-backup",
        ],
        "AutoHostnameKind" => &["off", "talos-addr", "stable"],
        "BondMode" => &[
            "balance-rr",
            "active-backup",
            "balance-xor",
            "broadcast",
            "802.3ad",
            "balance-tlb",
            "balance-alb",
        ],
        "BondXmitHashPolicy" => &["layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4"],
        "ClientIdentifier" => &["none", "mac", "duid"],
        "DNSProtocol" => &["Do53", "DoT", "DoH"],
        "DefaultAction" => &["accept", "block"],
        "EncryptionProviderType" => &["none", "luks2"],
        "FailOverMAC" => &["none", "active", "follow", "0", "1", "2"],
        "FilesystemType" => &[
            "none", "xfs", "vfat", "ext4", "iso9660", "swap", "virtiofs", "btrfs",
        ],
        "LACPRate" => &["slow", "fast"],
        "LVMLogicalVolumeType" => &["linear", "raid1", "raid0", "raid10"],
        "MDLevel" => &["raid1"],
        "MDMetadata" => &["1.0", "1.2"],
        "PrimaryReselect" => &["always", "better", "failure"],
        "Protocol" => &["icmp", "tcp", "udp", "icmpv6"],
        "RoutingRuleAction" => &["unspec", "unicast", "blackhole", "unreachable", "prohibit"],
        "VLANProtocol" => &["802.1q", "802.1ad"],
        "VolumeType" => &[
            "partition",
            "disk",
            "tmpfs",
            "directory",
            "symlink",
            "overlay",
            "external",
        ],
        "WOLMode" => &[
            "phy",
            "unicast",
            "multicast",
            "broadcast",
            "magic",
            "magicsecure",
            "filter",
        ],
        _ => return Ok(()),
    };
    let known = match of {
        // It is written as it is spelled, or not at all.
        "FailOverMAC" => text.is_empty() || words.contains(&text),
        _ => words.iter().any(|word| word.eq_ignore_ascii_case(text)),
    };
    match known {
        true => Ok(()),
        false => Err(format!("is not one of {}", words.join(", ")).into()),
    }
}

fn is_byte_size(text: &str) -> bool {
    text.is_empty() || value::size(text.strip_prefix('-').unwrap_or(text)).is_some()
}

fn is_percentage(text: &str) -> bool {
    let number = text
        .strip_suffix('%')
        .map(|text| text.strip_prefix('-').unwrap_or(text));
    number
        .and_then(|number| number.parse::<f64>().ok())
        .is_some_and(|number| (0.0..=100.0).contains(&number))
}

/// Returns whether a text is a size after an operator, or alone.
fn is_size_match(text: &str) -> bool {
    let text = text.trim();
    let operators = [">=", "<=", "==", ">", "<"];
    let size = operators
        .iter()
        .find_map(|operator| text.strip_prefix(operator));
    value::size(size.unwrap_or(text).trim()).is_some()
}

fn is_port_range(scalar: &Value) -> bool {
    match scalar {
        Value::Number(number) => whole(number).is_some_and(|port| (0..=65535).contains(&port)),
        Value::String(text) => text.split_once('-').is_some_and(|(low, high)| {
            let port = |text: &str| !text.starts_with('+') && text.parse::<u16>().is_ok();
            port(low) && port(high)
        }),
        _ => false,
    }
}

fn is_hexadecimal(text: &str) -> bool {
    let digits = text.bytes().filter(|byte| *byte != b':');
    digits.clone().all(|byte| byte.is_ascii_hexdigit()) && digits.count() % 2 == 0
}
