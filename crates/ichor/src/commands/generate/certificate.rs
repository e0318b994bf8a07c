//! `ichor gen key`, `gen csr` and `gen crt`: a client certificate in three steps.

use std::path::PathBuf;

use talos_pki::{Algorithm, Authority, LeafRequest, LeafUsage, PrivateKey, SigningRequest};

use super::authority::{address, hours};
use super::outputs::{self, Output, file_name};
use super::{now, unusable};
use crate::error::{Code, Error, Outcome};
use crate::files;
use crate::output::{Format, text_format};
use crate::session::Session;

/// Generate an Ed25519 private key
///
/// Writes NAME.key.
#[derive(Debug, clap::Args)]
pub(crate) struct Key {
    /// Name of the file
    #[arg(long, value_name = "NAME", required = true)]
    name: String,
    /// How to print what was written: table or json
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = text_format)]
    format: Format,
}

/// Generate a certificate signing request
///
/// Writes a file beside the key, with the ending csr.
#[derive(Debug, clap::Args)]
pub(crate) struct Csr {
    /// File with the private key
    #[arg(long, value_name = "FILE", required = true)]
    key: PathBuf,
    /// Address that the certificate should cover
    #[arg(long, value_name = "IP", required = true)]
    ip: String,
    /// Roles that the certificate's holder should have
    #[arg(
        long,
        value_name = "ROLE",
        value_delimiter = ',',
        default_value = "os:admin"
    )]
    roles: Vec<String>,
    /// How to print what was written: table or json
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = text_format)]
    format: Format,
}

/// Generate a client certificate from a signing request
///
/// Writes NAME.crt.
#[derive(Debug, clap::Args)]
pub(crate) struct Crt {
    /// Name of the file
    #[arg(long, value_name = "NAME", required = true)]
    name: String,
    /// Authority that signs: its files without their endings crt and key
    #[arg(long, value_name = "FILE", required = true)]
    ca: String,
    /// File with the signing request
    #[arg(long, value_name = "FILE", required = true)]
    csr: PathBuf,
    /// Hours until the certificate expires
    #[arg(long, value_name = "N", default_value = "24")]
    hours: i64,
    /// How to print what was written: table or json
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = text_format)]
    format: Format,
}

/// The roles that Talos knows.
const ROLES: [&str; 7] = [
    "os:admin",
    "os:operator",
    "os:reader",
    "os:etcd:backup",
    "os:image:verifier",
    "os:meta:writer",
    "os:impersonator",
];

/// Runs `gen key`.
pub(super) fn run_key(args: &Key, force: bool, session: &mut Session) -> Result<Outcome, Error> {
    let path = file_name("name", &args.name, ".key")?;
    let key = PrivateKey::generate(Algorithm::Ed25519)
        .map_err(|error| unusable("the key cannot be made", &error))?;
    let made = vec![Output::new("key", path, key.pem().as_str())];
    outputs::write(made, force, session)
}

/// Runs `gen csr`.
pub(super) fn run_csr(args: &Csr, force: bool, session: &mut Session) -> Result<Outcome, Error> {
    let unknown: Vec<&str> = args
        .roles
        .iter()
        .map(String::as_str)
        .filter(|role| !ROLES.contains(role))
        .collect();
    if !unknown.is_empty() {
        let message = format!("Talos has no role {}", unknown.join(", "));
        return Err(Error::new(Code::Usage, message).hint(format!("it has {}", ROLES.join(", "))));
    }
    let ip = address(&args.ip)?;
    let path = args.key.with_extension("csr");
    outputs::check_inputs(std::slice::from_ref(&path), [args.key.as_path()])?;
    outputs::check(std::slice::from_ref(&path), force)?;
    let key = read_key(&args.key)?;
    let text = SigningRequest::write_pem(&key, &args.roles, &[ip])
        .map_err(|error| unusable("the signing request cannot be made", &error))?;
    outputs::write(vec![Output::new("request", path, text)], force, session)
}

/// Runs `gen crt`.
pub(super) fn run_crt(args: &Crt, force: bool, session: &mut Session) -> Result<Outcome, Error> {
    let path = file_name("name", &args.name, ".crt")?;
    let (crt, key) = (format!("{}.crt", args.ca), format!("{}.key", args.ca));
    outputs::check_inputs(
        std::slice::from_ref(&path),
        [crt.as_ref(), key.as_ref(), args.csr.as_path()],
    )?;
    outputs::check(std::slice::from_ref(&path), force)?;
    let lifetime = hours(args.hours)?;
    let authority = Authority::from_pem(
        files::read(crt.as_ref())?,
        read_key(key.as_ref())?.pem().as_bytes(),
    )
    .map_err(|error| unusable(format!("{crt} cannot be used"), &error))?;
    let request = SigningRequest::from_pem(files::read(&args.csr)?)
        .map_err(|error| unusable(format!("{} cannot be used", args.csr.display()), &error))?;
    let leaf = LeafRequest {
        common_name: request.common_name().map(str::to_owned),
        organizations: request.organizations().to_vec(),
        names: request.names().to_vec(),
        usage: LeafUsage {
            client: true,
            ..LeafUsage::default()
        },
        lifetime,
        ..LeafRequest::default()
    };
    let certificate = authority
        .sign_leaf(&leaf, request.public_key_info(), now(session)?)
        .map_err(|error| unusable("the certificate cannot be made", &error))?;
    if certificate.not_after() > authority.certificate().not_after() {
        session.output.warn(&format!(
            "the certificate is valid until {}, but its authority {crt} only until {}",
            certificate.not_after(),
            authority.certificate().not_after()
        ));
    }
    let made = vec![Output::new("certificate", path, certificate.pem())];
    outputs::write(made, force, session)
}

fn read_key(path: &std::path::Path) -> Result<PrivateKey, Error> {
    let text = files::read(path)?;
    PrivateKey::from_pem(text)
        .map_err(|error| unusable(format!("{} cannot be used", path.display()), &error))
}
