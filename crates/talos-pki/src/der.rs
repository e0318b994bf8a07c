//! Writes DER, the little of it that certificates need.

/// Tags of the universal and context classes in use.
pub(crate) mod tag {
    pub(crate) const BOOLEAN: u8 = 0x01;
    pub(crate) const INTEGER: u8 = 0x02;
    pub(crate) const BIT_STRING: u8 = 0x03;
    pub(crate) const OCTET_STRING: u8 = 0x04;
    pub(crate) const NULL: u8 = 0x05;
    pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
    pub(crate) const UTF8_STRING: u8 = 0x0c;
    pub(crate) const PRINTABLE_STRING: u8 = 0x13;
    pub(crate) const UTC_TIME: u8 = 0x17;
    pub(crate) const GENERALIZED_TIME: u8 = 0x18;
    pub(crate) const SEQUENCE: u8 = 0x30;
    pub(crate) const SET: u8 = 0x31;

    pub(crate) const fn context(number: u8) -> u8 {
        0x80 | number
    }

    pub(crate) const fn context_constructed(number: u8) -> u8 {
        0xa0 | number
    }
}

/// Writes one value: tag, length, content.
pub(crate) fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 6);
    out.push(tag);
    if content.len() < 0x80 {
        out.push(content.len() as u8);
    } else {
        let length = content.len().to_be_bytes();
        let skip = length.iter().take_while(|byte| **byte == 0).count();
        out.push(0x80 | (length.len() - skip) as u8);
        out.extend_from_slice(&length[skip..]);
    }
    out.extend_from_slice(content);
    out
}

/// Writes a SEQUENCE of values that are written already.
pub(crate) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    value(tag::SEQUENCE, &parts.concat())
}

/// Writes a SET OF: DER wants the members sorted.
pub(crate) fn set_of(mut members: Vec<Vec<u8>>) -> Vec<u8> {
    members.sort();
    value(tag::SET, &members.concat())
}

/// Writes a non-negative INTEGER from big-endian bytes.
pub(crate) fn integer(bytes: &[u8]) -> Vec<u8> {
    let skip = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut content = Vec::with_capacity(bytes.len() + 1);
    // The first bit is the sign.
    if bytes.get(skip).is_none_or(|byte| byte & 0x80 != 0) {
        content.push(0);
    }
    content.extend_from_slice(&bytes[skip..]);
    value(tag::INTEGER, &content)
}

/// Writes a BIT STRING of whole bytes.
pub(crate) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    value(tag::BIT_STRING, &[&[0], bytes].concat())
}

/// Writes a BIT STRING of named bits, the first bit being the highest; trailing zeros are cut as DER asks.
pub(crate) fn named_bits(bits: u8) -> Vec<u8> {
    let unused = bits.trailing_zeros().min(7) as u8;
    value(tag::BIT_STRING, &[unused, bits])
}

/// Writes an OBJECT IDENTIFIER; the first two numbers share a byte.
pub(crate) fn object_identifier(numbers: &[u32]) -> Vec<u8> {
    let mut content = Vec::new();
    if let [first, second, rest @ ..] = numbers {
        base128(&mut content, first * 40 + second);
        for number in rest {
            base128(&mut content, *number);
        }
    }
    value(tag::OBJECT_IDENTIFIER, &content)
}

fn base128(out: &mut Vec<u8>, number: u32) {
    let groups = (1..=4).rev().filter(|group| number >> (7 * group) != 0);
    for group in groups {
        out.push(0x80 | (number >> (7 * group) & 0x7f) as u8);
    }
    out.push((number & 0x7f) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_as_few_bytes_as_der_asks() {
        assert_eq!(value(4, &[7; 2]), [4, 2, 7, 7]);
        assert_eq!(value(4, &[0; 127])[..2], [4, 127]);
        assert_eq!(value(4, &[0; 128])[..3], [4, 0x81, 128]);
        assert_eq!(value(4, &[0; 65_536])[..5], [4, 0x83, 1, 0, 0]);
    }

    #[test]
    fn integers_stay_positive_and_short() {
        assert_eq!(integer(&[]), [2, 1, 0]);
        assert_eq!(integer(&[0, 0, 5]), [2, 1, 5]);
        assert_eq!(integer(&[0x80]), [2, 2, 0, 0x80]);
    }

    #[test]
    fn object_identifiers_use_base_128() {
        assert_eq!(
            object_identifier(&[1, 2, 840, 10045, 2, 1]),
            [6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1]
        );
        assert_eq!(object_identifier(&[2, 5, 29, 17]), [6, 3, 0x55, 29, 17]);
    }

    #[test]
    fn named_bits_cut_trailing_zeros() {
        assert_eq!(named_bits(0b1000_0100), [3, 2, 2, 0b1000_0100]);
        assert_eq!(named_bits(0b1000_0000), [3, 2, 7, 0b1000_0000]);
    }
}
