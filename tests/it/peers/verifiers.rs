//! Verifiers that know nothing of this project judge the whole corpus of certificates: webpki, which rustls uses, and
//! OpenSSL.
//!
//! Each case is judged once for every name that it asks for. Where a verifier disagrees, the table of differences says
//! why and how often; any other disagreement fails, and so does a row of the table that no longer happens.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use talos_pki::{Name, Role};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use crate::certs::corpus::{Case, all, pem};

/// One explained difference: which case, whether the verifier accepts, how often, and why.
type Difference = (&'static str, bool, usize, &'static str);

const ROOT_DATES: &str = "webpki takes a trusted authority as a name and a key, whatever its dates";
const KEY_USAGE: &str = "webpki does not read keyUsage";
const OPENSSL_KEY_USAGE: &str = "OpenSSL takes keyEncipherment for a server too, as the key exchange of TLS 1.2 without ECDHE needed";
const TALOS_CLIENT: &str = "only the API of Talos wants clientAuth and nothing else";
const ANY_PURPOSE: &str =
    "anyExtendedKeyUsage counts for Go and so for Kubernetes, and RFC 5280 leaves it open";

const WEBPKI: &[Difference] = &[
    (
        "ten-thousand-names",
        false,
        2,
        "webpki reads no certificate of more than 64 KiB",
    ),
    ("root-expired", true, 1, ROOT_DATES),
    ("root-future", true, 1, ROOT_DATES),
    ("authority-may-not-sign", true, 1, KEY_USAGE),
    ("key-usage-encipherment-only", true, 1, KEY_USAGE),
    ("key-usage-cert-sign-only", true, 1, KEY_USAGE),
    (
        "authority-serves",
        false,
        1,
        "webpki refuses an authority as a server, which Go and OpenSSL accept: advice here",
    ),
    ("use-any", false, 1, ANY_PURPOSE),
    ("talos-client-with-two-purposes", true, 1, TALOS_CLIENT),
    ("talos-client-without-purposes", true, 1, TALOS_CLIENT),
    (
        "vendor-openssl-below1024",
        false,
        1,
        "webpki verifies with no RSA key below 2048 bits, which is advice here: weak-key",
    ),
];

const OPENSSL: &[Difference] = &[
    (
        "wildcard-part-of-label",
        true,
        1,
        "OpenSSL allows c*.example.com unless told otherwise; RFC 9525 does not",
    ),
    (
        "common-name-only",
        true,
        1,
        "OpenSSL takes the common name where there are no names; RFC 9525 does not",
    ),
    (
        "last-second",
        false,
        1,
        "for OpenSSL a certificate has expired at its last second; for RFC 5280 that belongs to it",
    ),
    (
        "middle-trusted-itself",
        false,
        1,
        "OpenSSL trusts an intermediate only with -partial_chain; Go and rustls do always",
    ),
    (
        "cross-signed-without-key-id",
        false,
        1,
        "without key identifiers OpenSSL takes it for self-signed by its names",
    ),
    ("use-any", false, 1, ANY_PURPOSE),
    ("key-usage-encipherment-only", true, 1, OPENSSL_KEY_USAGE),
    ("talos-client-with-two-purposes", true, 1, TALOS_CLIENT),
    ("talos-client-without-purposes", true, 1, TALOS_CLIENT),
    (
        "vendor-openssl-sha1",
        true,
        1,
        "OpenSSL still verifies SHA-1 at this security level; Go and rustls do not",
    ),
    (
        "vendor-openssl-md5",
        true,
        1,
        "OpenSSL still verifies MD5 at this security level; Go and rustls do not",
    ),
    (
        "der-and-more",
        true,
        1,
        "OpenSSL passes over what follows a certificate in its PEM block",
    ),
    (
        "pem-indented",
        false,
        1,
        "OpenSSL reads no indented PEM, as it stands in YAML files",
    ),
];

/// What a case is asked: one name, or none.
type Question = Option<Name>;

fn questions(case: &Case) -> Vec<Question> {
    let names = case.parsed_names();
    match names.is_empty() {
        true => vec![None],
        false => names.into_iter().map(Some).collect(),
    }
}

/// Compares every verdict with that of a verifier, which tells why it refuses.
fn compare(
    explained: &[Difference],
    mut verify: impl FnMut(&Case, Option<&Name>) -> Result<(), String>,
) {
    let mut wrong = Vec::new();
    let mut found: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    let mut asked = 0;
    for case in all() {
        for question in questions(case) {
            asked += 1;
            let verdict = verify(case, question.as_ref());
            if verdict.is_ok() == case.accepts(question.as_ref()) {
                continue;
            }
            let accepted = verdict.is_ok();
            *found.entry((case.id, accepted)).or_default() += 1;
            if !explained
                .iter()
                .any(|row| (row.0, row.1) == (case.id, accepted))
            {
                let name = question.map_or_else(|| "no name".to_owned(), |name| name.to_string());
                wrong.push(format!(
                    "{} for {name}: the verifier says {verdict:?}",
                    case.id
                ));
            }
        }
    }
    for (id, accepted, count, why) in explained {
        let times = found.get(&(*id, *accepted)).copied().unwrap_or_default();
        if times != *count {
            wrong.push(format!(
                "{id}: {times} differences, {count} explained by: {why}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "of {asked} verdicts:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn webpki_agrees_on_the_corpus() {
    compare(WEBPKI, |case, name| {
        let chain = case.read().map_err(|error| error.to_string())?;
        let ders: Vec<CertificateDer<'_>> = chain
            .iter()
            .map(|one| CertificateDer::from(one.der()))
            .collect();
        let (leaf, rest) = ders.split_first().ok_or("nothing presented")?;
        let say = |error: webpki::Error| format!("{error:?}");
        let leaf = EndEntityCert::try_from(leaf).map_err(say)?;
        let trusted: Vec<CertificateDer<'_>> = case
            .trusted
            .iter()
            .map(|der| CertificateDer::from(der.as_slice()))
            .collect();
        let anchors = trusted
            .iter()
            .map(anchor_from_trusted_cert)
            .collect::<Result<Vec<_>, _>>();
        let usage = match case.role {
            Role::Client | Role::TalosClient => KeyUsage::client_auth(),
            _ => KeyUsage::server_auth(),
        };
        let now =
            UnixTime::since_unix_epoch(Duration::from_secs(case.now().as_second().unsigned_abs()));
        leaf.verify_for_usage(
            ALL_VERIFICATION_ALGS,
            &anchors.map_err(say)?,
            rest,
            now,
            usage,
            None,
            None,
        )
        .map_err(say)?;
        let Some(name) = name else { return Ok(()) };
        let server = ServerName::try_from(name.to_string()).map_err(|error| error.to_string())?;
        leaf.verify_is_valid_for_subject_name(&server).map_err(say)
    });
}

#[test]
#[ignore = "needs openssl"]
fn openssl_agrees_on_the_corpus() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    compare(OPENSSL, |case, name| {
        // OpenSSL reads PEM by itself: what it is given is what a server would present, not what was read here.
        let chain: String = match &case.text {
            Some(text) => text.clone(),
            None => case
                .chain
                .iter()
                .map(|der| pem("CERTIFICATE", der))
                .collect(),
        };
        let trusted: String = case
            .trusted
            .iter()
            .map(|der| pem("CERTIFICATE", der))
            .collect();
        std::fs::write(path("chain.pem"), &chain).unwrap();
        std::fs::write(path("trusted.pem"), trusted).unwrap();
        openssl(folder.path(), case.role, case.now(), name)
    });
}

fn openssl(folder: &Path, role: Role, now: Timestamp, name: Option<&Name>) -> Result<(), String> {
    let purpose = match role {
        Role::Client | Role::TalosClient => "sslclient",
        _ => "sslserver",
    };
    let mut command = Command::new("openssl");
    command
        .current_dir(folder)
        .args([
            "verify",
            "-no-CApath",
            "-no-CAstore",
            "-CAfile",
            "trusted.pem",
        ])
        .args(["-untrusted", "chain.pem", "-purpose", purpose, "-attime"])
        .arg(now.as_second().to_string());
    match name {
        Some(Name::Ip(address)) => command.arg("-verify_ip").arg(address.to_string()),
        Some(Name::Dns(name)) => command.arg("-verify_hostname").arg(name),
        None => &mut command,
    };
    let output = command
        .arg("chain.pem")
        .output()
        .expect("openssl is installed");
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let line = errors
        .lines()
        .find(|line| line.contains("error"))
        .unwrap_or_default();
    Err(line.to_owned())
}
