//! `ichor certs inspect`: everything that stands in the certificates of one file, context or server.

mod print;

use std::io::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use talos_certs::{FileContents, Outcome as Connection, ProbeOptions, probe_server, read_file};
use talos_kube::Address;
use talos_pki::{Certificate, Expectation, Inspection, Name, issuer_of, judge};

use super::list::{Target, disk};
use crate::error::{Code, Error, Outcome};
use crate::output::Format;
use crate::session::Session;

/// Show everything that stands in the certificates of a file, context or server
///
/// Certificates may be expired, damaged or of an unknown issuer: what can be read is shown, and what is wrong is said. Files
/// may be PEM, DER, a talosconfig, kubeconfig, machine configuration or secrets bundle; keys in them are never shown.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A file, - for standard input, a server (HOST:PORT), or a context of the talosconfig; by default the current context
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    /// Ask a server for this name instead of the one it is dialled by
    #[arg(long, value_name = "NAME", value_parser = name)]
    server_name: Option<Name>,
    /// How to print: text, json, yaml or pem
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Shape,
}

/// How certificates are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Shape {
    #[value(alias = "table")]
    Text,
    Json,
    Yaml,
    Pem,
}

/// What `ichor certs inspect -o json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Inspected {
    /// What was looked at.
    target: String,
    /// What it is: a kind of file, `server` or `context`.
    kind: String,
    /// How the connection to a server went.
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<Connection>,
    /// The certificates, in their order.
    certificates: Vec<Detail>,
    /// What else is wrong.
    problems: Vec<String>,
}

/// One certificate.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Detail {
    /// Part of the target that holds it; empty for a plain list of certificates.
    #[serde(skip_serializing_if = "String::is_empty")]
    part: String,
    /// What it is for, as far as its place says.
    #[serde(skip_serializing_if = "String::is_empty")]
    purpose: String,
    /// Everything that stands in it.
    #[schemars(with = "serde_json::Value")]
    content: Inspection,
    /// Position, from 1, of the certificate of this target that issued it.
    #[serde(skip_serializing_if = "Option::is_none")]
    issued_by: Option<usize>,
    /// What is wrong with it now.
    findings: Vec<String>,
    /// The certificate as PEM.
    pem: String,
}

/// A certificate, or what stands in the place of one.
struct Raw {
    part: String,
    purpose: String,
    der: Vec<u8>,
    problem: Option<String>,
}

/// Runs the verb.
pub(super) fn run(args: &Args, session: &mut Session) -> Result<Outcome, Error> {
    session.output.set_format(match args.output {
        Shape::Json => Format::Json,
        Shape::Yaml => Format::Yaml,
        Shape::Text | Shape::Pem => Format::Table,
    });
    let now = Timestamp::now();
    let inspected = look(args, session, now)?;
    if inspected.certificates.is_empty() {
        return Err(nothing(&inspected));
    }
    let output = &mut session.output;
    if args.output == Shape::Pem {
        for detail in &inspected.certificates {
            output.text(&detail.pem)?;
        }
        for problem in &inspected.problems {
            output.warn(problem);
        }
    } else if !output.data(&inspected)? {
        print::inspected(output, &inspected, now)?;
    }
    Ok(Outcome::Done)
}

fn look(args: &Args, session: &mut Session, now: Timestamp) -> Result<Inspected, Error> {
    let target = args.target.as_deref();
    if target == Some("-") {
        let content = session.output.read_input_bytes("the target")?;
        let contents = read_file("standard input", &content);
        return Ok(of_file("standard input", contents, now));
    }
    let Some(target) = target else {
        return context(session, None, now)?.ok_or_else(|| {
            Error::new(Code::Usage, "the talosconfig has no current context")
                .hint("name a file, a server or a context")
        });
    };
    let failure = match Target::of(target) {
        Ok(Target::Path(path)) if path.is_dir() => {
            return Err(Error::new(Code::Usage, format!("{target} is a folder"))
                .hint(format!("`ichor certs list {target}` lists what it holds")));
        }
        Ok(Target::Path(path)) => return file(&path, now),
        Ok(Target::Server(address)) => return server(args, session, &address, now),
        Err(failure) => failure,
    };
    // Without a talosconfig there is no context to have been meant.
    match context(session, Some(target), now) {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(failure.cause("the talosconfig has no such context")),
        Err(_) => Err(failure),
    }
}

fn file(path: &Path, now: Timestamp) -> Result<Inspected, Error> {
    let shown = path.display().to_string();
    let content = disk::bytes(path)
        .map_err(|why| Error::new(Code::Invalid, format!("failed to read {shown}")).cause(why))?;
    Ok(of_file(&shown, disk::read(path, &content), now))
}

fn of_file(target: &str, contents: FileContents, now: Timestamp) -> Inspected {
    let kind = contents
        .kind
        .map_or("unknown", talos_certs::FileKind::as_str);
    let kept = contents.kept.into_iter().map(|kept| Raw {
        part: match kept.place {
            talos_certs::Place::File { part, .. } => part,
            _ => String::new(),
        },
        purpose: kept.purpose,
        der: kept.certificate.der().to_vec(),
        problem: None,
    });
    let mut raw: Vec<Raw> = kept.collect();
    let mut problems = Vec::new();
    for problem in contents.problems {
        let why = match problem.part.as_str() {
            "" => problem.why,
            part => format!("{part}: {}", problem.why),
        };
        match problem.der.is_empty() {
            true => problems.push(why),
            false => raw.push(Raw {
                part: problem.part,
                purpose: String::new(),
                der: problem.der,
                problem: Some(why),
            }),
        }
    }
    Inspected {
        target: target.to_owned(),
        kind: kind.to_owned(),
        connection: None,
        certificates: details(raw, now),
        problems,
    }
}

/// Looks at a context of the talosconfig, if it has one of this name.
fn context(
    session: &Session,
    wanted: Option<&str>,
    now: Timestamp,
) -> Result<Option<Inspected>, Error> {
    let config = session.talosconfig()?;
    let wanted = wanted.or(session.global.context.as_deref());
    let Ok((name, _)) = config.select(wanted) else {
        return Ok(None);
    };
    let part = format!("context {name:?}");
    let mut contents = read_file(config.file(), config.text().as_bytes());
    contents.kept.retain(|kept| match &kept.place {
        talos_certs::Place::File { part: at, .. } => *at == part,
        _ => false,
    });
    contents.problems.retain(|problem| problem.part == part);
    Ok(Some(Inspected {
        kind: "context".to_owned(),
        ..of_file(name, contents, now)
    }))
}

fn server(
    args: &Args,
    session: &mut Session,
    address: &Address,
    now: Timestamp,
) -> Result<Inspected, Error> {
    let options = ProbeOptions {
        server_name: Some(args.server_name.clone().unwrap_or(address.host.clone())),
        timeout: session.global.connect_timeout,
        ..ProbeOptions::default()
    };
    let runtime = session.runtime()?;
    let probe = runtime.run(async { Ok(probe_server(address, &options).await) })?;
    let (presented, connection) = match probe {
        Ok(probe) => (probe.presented, probe.outcome),
        Err(failure) => (Vec::new(), Connection::Failed(failure)),
    };
    let raw = presented.into_iter().map(|der| Raw {
        part: String::new(),
        purpose: String::new(),
        der,
        problem: None,
    });
    Ok(Inspected {
        target: address.to_string(),
        kind: "server".to_owned(),
        certificates: details(raw.collect(), now),
        problems: match &connection {
            Connection::Failed(failure) => vec![failure.to_string()],
            Connection::Completed { .. } | Connection::Refused { .. } => Vec::new(),
        },
        connection: Some(connection),
    })
}

fn details(raw: Vec<Raw>, now: Timestamp) -> Vec<Detail> {
    let read: Vec<Option<Certificate>> = raw
        .iter()
        .map(|raw| Certificate::from_der(&raw.der).ok())
        .collect();
    let known: Vec<Certificate> = read.iter().flatten().cloned().collect();
    raw.into_iter()
        .zip(&read)
        .map(|(raw, certificate)| {
            let issuer = certificate
                .as_ref()
                .and_then(|certificate| issuer_of(certificate, &known));
            let position = |issuer: &Certificate| {
                let mut all = read.iter();
                all.position(|read| read.as_ref() == Some(issuer))
            };
            let findings = match certificate {
                Some(certificate) => {
                    let chain = std::slice::from_ref(certificate);
                    let findings = judge(chain, &Expectation::default(), now);
                    findings
                        .into_iter()
                        .map(|finding| finding.message)
                        .collect()
                }
                None => raw.problem.into_iter().collect(),
            };
            Detail {
                part: raw.part,
                purpose: raw.purpose,
                content: Inspection::of(&raw.der),
                issued_by: issuer.and_then(position).map(|index| index + 1),
                findings,
                pem: match certificate {
                    Some(certificate) => certificate.pem(),
                    None => pem(&raw.der),
                },
            }
        })
        .collect()
}

/// Writes PEM of what is no certificate.
fn pem(der: &[u8]) -> String {
    let mut text = b"-----BEGIN CERTIFICATE-----\n".to_vec();
    for line in STANDARD.encode(der).as_bytes().chunks(64) {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    // Writing into memory does not fail.
    let _ = text.write_all(b"-----END CERTIFICATE-----\n");
    String::from_utf8_lossy(&text).into_owned()
}

/// Says why there is nothing to show.
fn nothing(inspected: &Inspected) -> Error {
    let (code, message) = match inspected.connection {
        Some(_) => (
            Code::Unreachable,
            format!("{} presented no certificate", inspected.target),
        ),
        None => (
            Code::Invalid,
            format!("{} holds no certificate that can be read", inspected.target),
        ),
    };
    let problems = inspected.problems.iter();
    problems.fold(Error::new(code, message), |error, problem| {
        error.cause(problem.clone())
    })
}

fn name(text: &str) -> Result<Name, String> {
    Name::parse(text).map_err(|error| error.to_string())
}
