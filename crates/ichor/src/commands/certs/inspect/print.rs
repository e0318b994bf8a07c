//! The content of certificates for people.

use jiff::Timestamp;
use talos_certs::{Outcome, TlsVersion};

use super::{Detail, Inspected};
use crate::error::Error;
use crate::output::{Output, one_line};
use crate::times::ago;

/// Names, and lines of one extension, that are shown.
const MOST: usize = 100;
/// Width of the first column.
const WIDTH: usize = 22;

/// Prints the connection, every certificate, and what is wrong.
pub(super) fn inspected(
    output: &mut Output,
    inspected: &Inspected,
    now: Timestamp,
) -> Result<(), Error> {
    let count = inspected.certificates.len();
    let many = if count == 1 { "" } else { "s" };
    output.line(&format!(
        "{} ({}): {count} certificate{many}",
        inspected.target, inspected.kind
    ))?;
    if let Some(connection) = &inspected.connection {
        output.line(&told(connection))?;
    }
    for (detail, number) in inspected.certificates.iter().zip(1..) {
        output.line("")?;
        let about = [detail.part.as_str(), detail.purpose.as_str()];
        let about: Vec<String> = about
            .iter()
            .filter(|text| !text.is_empty())
            .map(|text| one_line(text))
            .collect();
        let about = match about.is_empty() {
            true => String::new(),
            false => format!(": {}", about.join(", ")),
        };
        output.line(&format!("Certificate {number}{about}"))?;
        certificate(output, detail, number, now)?;
    }
    for problem in &inspected.problems {
        output.warn(&one_line(problem));
    }
    Ok(())
}

fn told(connection: &Outcome) -> String {
    match connection {
        Outcome::Completed {
            version,
            http2,
            asks_for_client_certificate,
        } => {
            let version = match version {
                TlsVersion::V1_2 => "1.2",
                TlsVersion::V1_3 => "1.3",
            };
            let http2 = if *http2 { ", HTTP/2" } else { "" };
            let asks = match asks_for_client_certificate {
                true => ", asks for a client certificate",
                false => "",
            };
            format!("Connected with TLS {version}{http2}{asks}")
        }
        Outcome::Refused { alert: Some(alert) } => {
            format!("Presented its certificate, then refused us: {alert}")
        }
        Outcome::Refused { alert: None } => {
            "Presented its certificate, then closed the connection".to_owned()
        }
        Outcome::Failed(failure) => format!("Failed: {failure}"),
    }
}

fn certificate(
    output: &mut Output,
    detail: &Detail,
    number: usize,
    now: Timestamp,
) -> Result<(), Error> {
    let content = &detail.content;
    let mut field = |name: &str, value: &str| row(output, name, value);
    for finding in &detail.findings {
        field("Wrong", finding)?;
    }
    if let Some(malformed) = &content.malformed
        && !detail.findings.contains(malformed)
    {
        field("Malformed", malformed)?;
    }
    for part in &content.unreadable {
        field("Unreadable", part)?;
    }
    let empty = |text: &str| match text {
        "" => "(empty)".to_owned(),
        text => text.to_owned(),
    };
    if let Some(subject) = &content.subject {
        field("Subject", &empty(&subject.text))?;
    }
    if let Some(issuer) = &content.issuer {
        let by = match detail.issued_by {
            Some(by) if by == number => " (itself)".to_owned(),
            Some(by) => format!(" (certificate {by})"),
            None => String::new(),
        };
        field("Issuer", &format!("{}{by}", empty(&issuer.text)))?;
    }
    if let Some(begin) = content.not_before {
        field("Valid from", &format!("{begin} ({})", ago(begin, now)))?;
    }
    if let Some(end) = content.not_after {
        field("Valid until", &format!("{end} ({})", ago(end, now)))?;
    }
    let names = content.names.iter();
    let names: Vec<String> = names
        .map(|name| format!("{} {}", name.kind, name.value))
        .collect();
    list(&mut field, "Names", &names)?;
    if let Some(key) = &content.key {
        field("Key", &key.kind)?;
        field("Key pin (SHA-256)", &key.pin)?;
    }
    for (name, value) in [
        ("Signed with", &content.signature_algorithm),
        ("Serial number", &content.serial),
        ("Key identifier", &content.subject_key_id),
        ("Issuer's identifier", &content.authority_key_id),
    ] {
        if let Some(value) = value {
            field(name, value)?;
        }
    }
    let shown = [
        "subjectAltName",
        "subjectKeyIdentifier",
        "authorityKeyIdentifier",
    ];
    for extension in &content.extensions {
        let name = extension.name.as_deref().unwrap_or(&extension.id);
        if shown.contains(&name) && !extension.critical {
            continue;
        }
        if shown.contains(&name) {
            field(name, "critical")?;
            continue;
        }
        let mut lines = extension.value.clone();
        lines.extend(extension.hex.as_ref().map(|hex| format!("hex {hex}")));
        let joined = match lines.iter().map(String::len).sum::<usize>() < 60 {
            true => vec![lines.join(", ")],
            false => lines,
        };
        let name = match extension.critical {
            true => format!("{name}!"),
            false => name.to_owned(),
        };
        list(&mut field, &name, &joined)?;
    }
    if content
        .extensions
        .iter()
        .any(|extension| extension.critical)
    {
        field("", "(! marks what is critical)")?;
    }
    field("SHA-256", &content.fingerprint_sha256)?;
    field("SHA-1", &content.fingerprint_sha1)?;
    field("Length", &format!("{} bytes", content.length))
}

/// Prints values below each other.
fn list(
    field: &mut impl FnMut(&str, &str) -> Result<(), Error>,
    name: &str,
    values: &[String],
) -> Result<(), Error> {
    for (index, value) in values.iter().take(MOST).enumerate() {
        field(if index == 0 { name } else { "" }, value)?;
    }
    if values.len() > MOST {
        let rest = values.len() - MOST;
        field("", &format!("and {rest} more, which -o json shows"))?;
    }
    Ok(())
}

fn row(output: &mut Output, name: &str, value: &str) -> Result<(), Error> {
    let value = one_line(value);
    output.line(format!("  {name:<WIDTH$}{value}").trim_end())
}
