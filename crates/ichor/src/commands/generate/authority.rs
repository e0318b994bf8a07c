//! `ichor gen ca` and `ichor gen keypair`: authorities of one's own.

use std::net::IpAddr;

use jiff::SignedDuration;
use talos_pki::{Algorithm, Authority, Name};

use super::outputs::{self, Output, file_name};
use super::{now, unusable};
use crate::error::{Code, Error, Outcome};
use crate::output::{Format, text_format};
use crate::session::Session;

/// Generate a self-signed certificate authority
///
/// Writes ORGANIZATION.crt, ORGANIZATION.key, and the hash of the public key as ORGANIZATION.sha256.
#[derive(Debug, clap::Args)]
pub(crate) struct Ca {
    /// Organization in the subject, and name of the files
    #[arg(long, value_name = "ORGANIZATION", required = true)]
    organization: String,
    /// Hours until the certificate expires
    #[arg(long, value_name = "N", default_value = "87600")]
    hours: i64,
    /// Use RSA instead of Ed25519
    #[arg(long)]
    rsa: bool,
    /// How to print what was written: table or json
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = text_format)]
    format: Format,
}

/// Generate an Ed25519 key with a self-signed certificate
///
/// Writes ORGANIZATION.crt and ORGANIZATION.key; the certificate is an authority's and expires after a day.
#[derive(Debug, clap::Args)]
pub(crate) struct Keypair {
    /// Organization in the subject, and name of the files
    #[arg(long, value_name = "ORGANIZATION", required = true)]
    organization: String,
    /// Address that the certificate covers
    #[arg(long, value_name = "IP")]
    ip: Option<String>,
    /// How to print what was written: table or json
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = text_format)]
    format: Format,
}

/// How long the certificate of a key pair lives.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Runs `gen ca`.
pub(super) fn run_ca(args: &Ca, force: bool, session: &mut Session) -> Result<Outcome, Error> {
    let name = |ending| file_name("organization", &args.organization, ending);
    let (crt, sha256, key) = (name(".crt")?, name(".sha256")?, name(".key")?);
    outputs::check(&[crt.clone(), sha256.clone(), key.clone()], force)?;
    let algorithm = match args.rsa {
        true => Algorithm::Rsa(4096),
        false => Algorithm::Ed25519,
    };
    let organization = Some(args.organization.as_str());
    let lifetime = hours(args.hours)?;
    let authority = Authority::generate_with(algorithm, organization, lifetime, now(session)?)
        .map_err(|error| unusable("the authority cannot be made", &error))?;
    let certificate = authority.certificate();
    let made = vec![
        Output::new("certificate", crt, certificate.pem()),
        Output::new(
            "fingerprint",
            sha256,
            format!("sha256:{}", hex(&certificate.spki_sha256())),
        ),
        Output::new("key", key, authority.key().pem().as_str()),
    ];
    outputs::write(made, force, session)
}

/// Runs `gen keypair`.
pub(super) fn run_keypair(
    args: &Keypair,
    force: bool,
    session: &mut Session,
) -> Result<Outcome, Error> {
    let name = |ending| file_name("organization", &args.organization, ending);
    let (crt, key) = (name(".crt")?, name(".key")?);
    outputs::check(&[crt.clone(), key.clone()], force)?;
    let ip = args.ip.as_deref().map(address).transpose()?;
    let names: Vec<Name> = ip.into_iter().collect();
    let organization = Some(args.organization.as_str());
    let authority =
        Authority::generate_named(Algorithm::Ed25519, organization, &names, DAY, now(session)?)
            .map_err(|error| unusable("the certificate cannot be made", &error))?;
    let made = vec![
        Output::new("certificate", crt, authority.certificate().pem()),
        Output::new("key", key, authority.key().pem().as_str()),
    ];
    outputs::write(made, force, session)
}

/// Checks a number of hours, which is the life of a certificate.
pub(super) fn hours(hours: i64) -> Result<SignedDuration, Error> {
    // More would leave the years that a certificate can name.
    const MOST: i64 = 7000 * 365 * 24;
    match hours {
        1..=MOST => Ok(SignedDuration::from_hours(hours)),
        _ => Err(Error::new(
            Code::Usage,
            format!("--hours {hours} is no lifetime of a certificate"),
        )),
    }
}

/// Reads the value of `--ip`.
pub(super) fn address(text: &str) -> Result<Name, Error> {
    text.parse::<IpAddr>()
        .map(Name::Ip)
        .map_err(|_| Error::new(Code::Usage, format!("--ip {text:?} is not an IP address")))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
