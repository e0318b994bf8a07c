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
        let Some((label, rest)) = marker(line, BEGIN) else {
            continue;
        };
        let name = name(label);
        if !rest.is_empty() {
            return Err(Error::PemOneLine {
                line: index + 1,
                label: name.to_owned(),
            });
        }
        let mut encrypted = label == "ENCRYPTED PRIVATE KEY";
        let mut content = Zeroizing::new(String::new());
        let closed = loop {
            let Some((_, line)) = lines.next() else {
                break false;
            };
            if let Some(end) = marker(line, END) {
                break end == (label, "");
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
                label: name.to_owned(),
            });
        }
        let der = if encrypted {
            Vec::new()
        } else {
            STANDARD
                .decode(content.as_str())
                .map_err(|source| Error::PemEncoding {
                    line: index + 1,
                    label: name.to_owned(),
                    source,
                })?
        };
        blocks.push(Block {
            label: name.to_owned(),
            der: Zeroizing::new(der),
            encrypted,
        });
    }
    Ok(blocks)
}

/// Reads the blocks that are certificates, of which there must be one.
pub(crate) fn certificates(text: &[u8]) -> Result<Vec<Block>, Error> {
    let mut found = blocks(text)?;
    found.retain(|block| matches!(block.label.as_str(), "CERTIFICATE" | "X509 CERTIFICATE"));
    if found.is_empty() {
        return Err(Error::NoCertificate);
    }
    Ok(found)
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

/// Splits a line that starts a block, or ends one, into the label and what stands after it.
fn marker<'line>(line: &'line str, kind: &str) -> Option<(&'line str, &'line str)> {
    line.trim().strip_prefix(kind)?.split_once(DASHES)
}

/// Returns a label, unless it may be content whose line breaks are lost: errors show it.
fn name(label: &str) -> &str {
    /// Letters of a label and of a word in it: `CERTIFICATE` has 11, and the key of least content 64.
    const LONGEST: (usize, usize) = (64, 16);
    let is_word = |word: &str| {
        word.len() <= LONGEST.1
            && word
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    match label.len() <= LONGEST.0 && label.split(' ').all(is_word) {
        true => label,
        false => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use crate::PrivateKey;

    /// What no error may show.
    const CONTENT: &str = "MC4CAQAwBQYDK2VwBCIEIKTpgBDdQhbbqLjXBMBqZhNVgNqhCAXuXpIUgyBk0A4n";

    #[test]
    fn no_error_shows_the_content_of_a_block() {
        let label = "ED25519 PRIVATE KEY";
        for text in [
            format!("-----BEGIN {label}-----{CONTENT}-----END {label}-----"),
            format!("-----BEGIN {label}----- {CONTENT} -----END {label}-----\n"),
            format!("-----BEGIN {label}-----\\n{CONTENT}\\n-----END {label}-----\\n"),
            format!("-----BEGIN {label}-----\r{CONTENT}\r-----END {label}-----\r"),
            format!("-----BEGIN {label} {CONTENT}-----END {label}-----"),
            format!("-----BEGIN {CONTENT}-----\n"),
            format!(
                "-----BEGIN {CONTENT} PRIVATE KEY-----\nAAAA\n-----END {CONTENT} PRIVATE KEY-----\n"
            ),
            format!("-----BEGIN {label}-----\n{CONTENT}-----END {label}-----\n"),
            format!("-----BEGIN {label}-----\n{CONTENT}\n-----END {label}\n"),
            format!("-----BEGIN {label}-----\n{CONTENT}\n-----END {CONTENT}-----\n"),
            format!("-----BEGIN {label}-----\n{CONTENT}A\n-----END {label}-----\n"),
            format!(
                "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
                &CONTENT[..60]
            ),
        ] {
            let error = PrivateKey::from_pem(&text).unwrap_err();
            let mut said = format!("{error:?}");
            let mut cause: Option<&dyn std::error::Error> = Some(&error);
            while let Some(error) = cause {
                said.push_str(&error.to_string());
                cause = error.source();
            }
            assert!(!said.contains("AwBQ"), "{said}");
        }
    }

    #[test]
    fn a_block_on_one_line_is_told_as_such() {
        let text = format!("\n-----BEGIN PRIVATE KEY-----{CONTENT}-----END PRIVATE KEY-----\n");
        assert_eq!(
            PrivateKey::from_pem(text).unwrap_err().to_string(),
            "line 2: PEM block \"PRIVATE KEY\" does not have its begin line to itself; its line breaks are lost"
        );
    }
}
