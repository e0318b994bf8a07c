//! `ichor gen secrets`: the secrets bundle of a cluster.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use talos_config::generate::{PkiFiles, Secrets};

use super::outputs::{self, Output};
use super::{invalid, now, release};
use crate::commands::patch::input;
use crate::error::{Error, Outcome};
use crate::files;
use crate::output::{Format, text_format};
use crate::session::Session;
use crate::values;

/// Generate the secrets bundle of a cluster
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File to write to, - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "secrets.yaml")]
    output_file: PathBuf,
    /// Talos version that the cluster starts with, such as v1.13; the newest that is known if not given
    #[arg(long, value_name = "VERSION", value_parser = values::talos_version_if_any)]
    talos_version: Option<String>,
    /// Take the secrets out of this machine config of a control plane, - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "from_kubernetes_pki")]
    from_controlplane_config: Option<String>,
    /// Take the authorities of Kubernetes and etcd from this folder, as kubeadm fills it
    #[arg(short = 'p', long, value_name = "DIR")]
    from_kubernetes_pki: Option<PathBuf>,
    /// Use this token to join Kubernetes instead of a fresh one
    #[arg(short = 't', long, value_name = "TOKEN")]
    kubernetes_bootstrap_token: Option<String>,
    /// How to print what was written: table or json
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = text_format)]
    format: Format,
}

/// Runs the command.
pub(super) fn run(args: &Args, force: bool, session: &mut Session) -> Result<Outcome, Error> {
    let path = std::slice::from_ref(&args.output_file);
    let pki = args.from_kubernetes_pki.iter();
    let pki: Vec<PathBuf> = pki
        .flat_map(|folder| Secrets::PKI_FILES.map(|name| folder.join(name)))
        .collect();
    let config = args.from_controlplane_config.as_deref().map(Path::new);
    outputs::check_inputs(path, pki.iter().map(PathBuf::as_path).chain(config))?;
    outputs::check(path, force)?;
    let mut secrets = secrets(args, session)?;
    if let Some(token) = &args.kubernetes_bootstrap_token {
        session.output.learn_secret(token);
        secrets
            .set_bootstrap_token(token)
            .map_err(|error| invalid(&error))?;
    }
    let output = Output::new("secrets", &args.output_file, secrets.text());
    outputs::write(vec![output], force, session)
}

fn secrets(args: &Args, session: &mut Session) -> Result<Secrets, Error> {
    let release = release(args.talos_version.as_deref(), session)?;
    let contract = release.contract();
    if let Some(warning) = release.warning() {
        session.output.warn(&warning);
    }
    if let Some(path) = &args.from_controlplane_config {
        let text = input::text_of(session, path)?;
        session.output.learn_secrets_of(&text);
        let found = Secrets::from_config(&text)
            .map_err(|error| invalid(&error).context(format!("{path} gives no secrets")))?;
        for warning in &found.warnings {
            session.output.warn(&format!("{path}: {warning}"));
        }
        return Ok(found.secrets);
    }
    let now = now(session)?;
    let random = &mut talos_pki::fill_random;
    match &args.from_kubernetes_pki {
        Some(folder) => {
            let files = read_pki(folder)?;
            Secrets::from_pki(&files, contract, now, random).map_err(|error| {
                invalid(&error).context(format!("{} gives no secrets", folder.display()))
            })
        }
        None => Secrets::generate(contract, now, random).map_err(|error| invalid(&error)),
    }
}

/// Reads those files of a folder that are there.
fn read_pki(folder: &Path) -> Result<PkiFiles, Error> {
    let mut read = PkiFiles::default();
    for name in Secrets::PKI_FILES {
        let path = folder.join(name);
        let is_missing = std::fs::metadata(&path).is_err_and(|error| {
            matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        });
        if !is_missing {
            read.insert(name, files::read(&path)?);
        }
    }
    Ok(read)
}
