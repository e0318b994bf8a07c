//! PEM text: blocks between begin and end lines, whatever stands around them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::Error;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";
/// Characters a line, as RFC 7468 asks.
const LINE: usize = 64;

/// One block of a PEM text. Its content may be secret, so it has no `Debug`.
pub(crate) struct Block {
    pub(crate) label: String,
    pub(crate) der: Zeroizing<Vec<u8>>,
    pub(crate) encrypted: bool,
}

/// Reads all blocks; text around them, blank lines, indentation and CRLF are no problem.
pub(crate) fn blocks(text: &[u8]) -> Result<Vec<Block>, Error> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().enumerate();
    let mut blocks = Vec::new();
    while let Some((index, line)) = lines.next() {
        let Some(label) = marker(line, BEGIN) else {
            continue;
        };
        let mut encrypted = label == "ENCRYPTED PRIVATE KEY";
        let mut content = Zeroizing::new(String::new());
        let closed = loop {
            let Some((_, line)) = lines.next() else {
                break false;
            };
            if let Some(end) = marker(line, END) {
                break end == label;
            }
            if marker(line, BEGIN).is_some() {
                break false;
            }
            if line.contains(':') {
                encrypted |= line.contains("ENCRYPTED");
            } else {
                content.extend(line.chars().filter(|letter| !letter.is_whitespace()));
            }
        };
        if !closed {
            return Err(Error::PemUnclosed {
                line: index + 1,
                label: label.to_owned(),
            });
        }
        let der = if encrypted {
            Vec::new()
        } else {
            STANDARD
                .decode(content.as_str())
                .map_err(|source| Error::PemEncoding {
                    line: index + 1,
                    label: label.to_owned(),
                    source,
                })?
        };
        blocks.push(Block {
            label: label.to_owned(),
            der: Zeroizing::new(der),
            encrypted,
        });
    }
    Ok(blocks)
}

/// Writes one block with lines of 64 characters.
pub(crate) fn encode(label: &str, der: &[u8]) -> String {
    let content = Zeroizing::new(STANDARD.encode(der));
    let mut text =
        String::with_capacity(content.len() + content.len() / LINE + 2 * label.len() + 34);
    text.extend([BEGIN, label, DASHES, "\n"]);
    let mut rest = content.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        text.extend([line, "\n"]);
        rest = after;
    }
    text.extend([END, label, DASHES, "\n"]);
    text
}

fn marker<'line>(line: &'line str, kind: &str) -> Option<&'line str> {
    line.trim().strip_prefix(kind)?.strip_suffix(DASHES)
}
