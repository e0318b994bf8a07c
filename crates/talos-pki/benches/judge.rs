//! Prints how many certificates are read and judged in a second on one core, and fails below half of the mark.
//!
//! `cargo bench -p talos-pki` runs it. Each certificate is read from DER, its signature verified against one of four
//! authorities, and its names, dates and uses judged: all that `certs check` does for one server.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use talos_pki::{
    Authority, AuthorityKind, Certificate, Expectation, KnownAuthority, LeafRequest, LeafUsage,
    Name, Role, judge,
};

/// Certificates judged in a second.
const MARK: f64 = 10_000.0;
/// The best of so many turns counts: other work on the machine slows some of them down.
const TURNS: usize = 5;

fn main() -> ExitCode {
    println!("{:<46} {:>12} {:>12}", "figure", "measured", "mark");
    let mut failed = false;
    for (name, kind) in [
        (
            "certificates below ECDSA P-256, per second",
            AuthorityKind::Kubernetes,
        ),
        (
            "certificates below Ed25519, per second",
            AuthorityKind::Talos,
        ),
    ] {
        match measure(kind) {
            Ok(measured) => {
                let verdict = match measured {
                    measured if measured < MARK / 2.0 => "  FAILED: worse than half of its mark",
                    measured if measured < MARK => "  missed",
                    _ => "",
                };
                failed |= measured < MARK / 2.0;
                println!("{name:<46} {measured:>12.0} {MARK:>12.0}{verdict}");
            }
            Err(error) => {
                println!("{name}: {error}");
                failed = true;
            }
        }
    }
    ExitCode::from(u8::from(failed))
}

fn measure(kind: AuthorityKind) -> Result<f64, Box<dyn Error>> {
    let now: Timestamp = "2026-11-30T16:00:00Z".parse()?;
    let authority = Authority::generate(kind, now)?;
    let mut known = Vec::new();
    for kind in [AuthorityKind::Etcd, AuthorityKind::Aggregator] {
        known.push(KnownAuthority {
            label: kind.label().to_owned(),
            certificate: Authority::generate(kind, now)?.certificate().clone(),
        });
    }
    let mut chains = Vec::new();
    for node in 0..250 {
        let names = names(node)?;
        let request = LeafRequest {
            common_name: Some(format!("cp-{node}")),
            names: names.clone(),
            usage: LeafUsage {
                server: true,
                ..LeafUsage::default()
            },
            lifetime: SignedDuration::from_hours(24),
            ..LeafRequest::default()
        };
        let leaf = authority.issue(&request, now)?.certificate;
        let expectation = Expectation {
            names,
            role: Role::Server,
            authorities: vec![authority.certificate().clone()],
            other_authorities: known.clone(),
            warn_within: SignedDuration::from_hours(1),
            ..Expectation::default()
        };
        chains.push((leaf.der().to_vec(), expectation));
    }
    let mut best: f64 = 0.0;
    for _ in 0..TURNS {
        let start = Instant::now();
        let mut judged = 0_u32;
        while start.elapsed() < Duration::from_secs(1) {
            for (der, expectation) in &chains {
                let leaf = Certificate::from_der(black_box(der))?;
                let findings = judge(&[leaf], expectation, now);
                if let Some(finding) = findings.first() {
                    return Err(
                        format!("a sound certificate is refused: {}", finding.message).into(),
                    );
                }
                judged += 1;
            }
        }
        best = best.max(f64::from(judged) / start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// The names by which a node of a real cluster is reached.
fn names(node: u8) -> Result<Vec<Name>, talos_pki::Error> {
    let texts = [
        format!("cp-{node}"),
        format!("cp-{node}.example.com"),
        "kubernetes.default.svc.cluster.local".to_owned(),
        "localhost".to_owned(),
        format!("10.5.0.{node}"),
        format!("fd00::{node}"),
        "10.96.0.1".to_owned(),
        "127.0.0.1".to_owned(),
    ];
    texts.iter().map(|text| Name::parse(text)).collect()
}
