//! Values with a syntax of their own: addresses, durations, sizes, URLs and names, as Talos reads them.

mod url;

pub(super) use url::Url;

use std::net::{IpAddr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::GeneralPurpose;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};

/// Standard base64 whose last bits need not be zero.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// Returns the boolean that a plain word means to the decoder of Talos.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => {
            Some(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            Some(false)
        }
        _ => None,
    }
}

/// Returns the address without a zone that a text is.
pub(super) fn ip(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// Returns the address that a text is; one of IPv6 may have a zone, such as `fe80::1%eth0`.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    match text.split_once('%') {
        Some((_, "")) => None,
        Some((address, _)) => address.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => ip(text),
    }
}

/// Returns the address and the length of the prefix that a text such as `10.0.0.1/24` is.
pub(super) fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.rsplit_once('/')?;
    let address = ip(address)?;
    let plain = bits.bytes().all(|byte| byte.is_ascii_digit())
        && (bits.len() == 1 || !bits.starts_with('0'));
    let bits: u8 = bits.parse().ok().filter(|_| plain)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    (bits <= most).then_some((address, bits))
}

/// Returns the prefix that a text is; an address is one of its whole length.
pub(super) fn prefix_or_address(text: &str) -> Option<(IpAddr, u8)> {
    prefix(text).or_else(|| {
        let address = address(text)?;
        Some((address, if address.is_ipv4() { 32 } else { 128 }))
    })
}

/// Splits `host:port`, where a host with colons stands in brackets; the port may be any text.
pub(super) fn host_port(text: &str) -> Option<(&str, &str)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':')?)
        }
        None => text.split_once(':')?,
    };
    let bracketed = text.starts_with('[');
    let clean = !port.contains([':', '[', ']']) && !host.contains(['[', ']']);
    (clean && (bracketed || !host.contains(':'))).then_some((host, port))
}

/// Returns the address and port that a text such as `10.0.0.1:80` or `[::1]:80` is.
pub(super) fn address_port(text: &str) -> Option<(IpAddr, u16)> {
    let (host, port) = host_port(text)?;
    let address = address(host)?;
    let plain = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|_| plain)?;
    (address.is_ipv6() == text.starts_with('[')).then_some((address, port))
}

/// Returns the nanoseconds of a duration such as `1h30m` or `-1.5s`.
pub(super) fn duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        total += number_of(number, unit)?;
        if total > i128::from(i64::MAX) + i128::from(negative) {
            return None;
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// Returns the nanoseconds of one number with its unit.
fn number_of(number: &str, unit: &str) -> Option<i128> {
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: i128 = match whole {
        "" => 0,
        _ => whole.parse::<i64>().ok()?.into(),
    };
    let mut total = whole * unit;
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        total += i128::from(digit - b'0') * place;
    }
    Some(total)
}

/// Returns the bytes of a size such as `10GB`, `1.5 GiB` or `4096`.
pub(super) fn size(text: &str) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_numeric() && c != '.' && c != ',')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.replace(',', "").parse().ok()?;
    let unit = unit.trim().to_ascii_lowercase();
    let (letter, rest) = match unit.chars().next() {
        Some(letter) => (letter, &unit[letter.len_utf8()..]),
        None => ('b', ""),
    };
    let power = match letter {
        'b' if rest.is_empty() => 0,
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        'p' => 5,
        'e' => 6,
        _ => return None,
    };
    let base: f64 = match rest {
        "" | "b" => 1000.0,
        "i" | "ib" => 1024.0,
        _ => return None,
    };
    let bytes = number * base.powi(power);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be in range"
    )]
    (bytes.is_finite() && (0.0..18_446_744_073_709_551_616.0).contains(&bytes))
        .then_some(bytes as u64)
}

/// Returns the bytes that a standard base64 text encodes; line breaks in it mean nothing.
pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    match text.contains(['\n', '\r']) {
        true => BASE64.decode(text.replace(['\n', '\r'], "")).ok(),
        false => BASE64.decode(text).ok(),
    }
}

/// Returns whether a text can be a DNS name as a certificate may have one: labels of letters, digits, `-` and `_`,
/// where the first may be `*`.
pub(super) fn is_dns_name(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    let rest = name.strip_prefix("*.").unwrap_or(name);
    let label = |label: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(known)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = rest.rsplit('.').next().unwrap_or_default();
    let number = last.bytes().all(|byte| byte.is_ascii_digit());
    name.len() <= 253 && rest.split('.').all(label) && !number
}

/// Returns the tag of an image reference such as `ghcr.io/siderolabs/installer:v1.13.9@sha256:...`.
pub(super) fn image_tag(image: &str) -> Option<&str> {
    let name = image.split('@').next().unwrap_or_default();
    let (_, tag) = name.rsplit('/').next()?.rsplit_once(':')?;
    (!tag.is_empty()).then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_go() {
        for (text, value) in [
            ("0", Some(0)),
            ("1h30m", Some(5_400_000_000_000)),
            ("-1.5s", Some(-1_500_000_000)),
            ("+.5ms", Some(500_000)),
            ("1.s", Some(1_000_000_000)),
            ("2562047h47m16.854775807s", Some(i64::MAX)),
            ("2562048h", None),
            ("", None),
            ("5", None),
            (".s", None),
            ("1d", None),
            ("s", None),
            ("1s ", None),
            ("99999999999999999999s", None),
        ] {
            assert_eq!(duration(text), value, "{text}");
        }
    }

    #[test]
    fn sizes_read_as_humans_write_them() {
        for (text, value) in [
            ("4096", Some(4096)),
            ("10GB", Some(10_000_000_000)),
            ("1.5 GiB", Some(1_610_612_736)),
            ("2k", Some(2000)),
            ("1,024 b", Some(1024)),
            ("1Mi", Some(1_048_576)),
            ("10XB", None),
            ("GB", None),
            ("-1GB", None),
            ("100EB", None),
            ("1bb", None),
        ] {
            assert_eq!(size(text), value, "{text}");
        }
    }

    #[test]
    fn addresses_read_as_in_go() {
        assert!(address("fe80::1%eth0").is_some() && ip("fe80::1%eth0").is_none());
        assert!(address("10.0.0.1%eth0").is_none() && address("fe80::1%").is_none());
        assert!(address("010.0.0.1").is_none() && address("10.0.0").is_none());
        assert!(prefix("10.0.0.1/32").is_some() && prefix("10.0.0.1/33").is_none());
        assert!(prefix("10.0.0.1/08").is_none() && prefix("10.0.0.1/+8").is_none());
        assert!(prefix("::/0").is_some() && prefix("10.0.0.1").is_none());
        assert_eq!(host_port("[::1]:80"), Some(("::1", "80")));
        assert_eq!(host_port("host:http"), Some(("host", "http")));
        for bad in ["host", "::1", "[::1]", "[::1]80", "a:b:c", "[a:1", "a]:1"] {
            assert_eq!(host_port(bad), None, "{bad}");
        }
        assert!(
            address_port("10.0.0.1:65535").is_some() && address_port("10.0.0.1:65536").is_none()
        );
        assert!(address_port("10.0.0.1:").is_none() && address_port("[10.0.0.1]:1").is_none());
    }

    #[test]
    fn names_of_certificates_are_told() {
        for good in ["a", "a.b-c.d", "*.example.com", "_x.example.", "host1"] {
            assert!(is_dns_name(good), "{good}");
        }
        for bad in [
            "",
            "a..b",
            "a b",
            "*",
            "-a",
            "a-",
            "1.2.3.4",
            "https://a",
            "a:1",
            "ä",
        ] {
            assert!(!is_dns_name(bad), "{bad}");
        }
    }

    #[test]
    fn tags_are_told_from_ports() {
        assert_eq!(image_tag("host:5000/a"), None);
        assert_eq!(image_tag("host:5000/a:v1@sha256:00"), Some("v1"));
        assert_eq!(image_tag("a:"), None);
    }
}
