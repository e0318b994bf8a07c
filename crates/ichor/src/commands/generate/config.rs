//! `ichor gen config`: the machine configs and talosconfig of a new cluster.

use std::path::{Path, PathBuf};

use talos_config::Schema;
use talos_config::generate::{Comments, Endpoint, Params, Secrets, machine_config, talosconfig};
use talos_config::machine::MachineType;
use talos_config::patch::{Options, Patch, apply_with};

use super::outputs::{self, Output};
use super::{invalid, now, release};
use crate::commands::patch::input;
use crate::error::{Code, Error, Outcome};
use crate::files::is_stdout;
use crate::output::{Format, text_format};
use crate::session::Session;
use crate::values;

/// Generate the machine configs and talosconfig of a new cluster
///
/// The same secrets give the same files if SOURCE_DATE_EPOCH is the same too.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Name of the cluster
    #[arg(value_name = "CLUSTER NAME")]
    name: String,
    /// URL of its Kubernetes API, such as https://10.5.0.2:6443
    #[arg(value_name = "CLUSTER ENDPOINT")]
    endpoint: String,
    /// Disk to install to
    #[arg(long, value_name = "DISK", default_value = "/dev/sda")]
    install_disk: String,
    /// Image to install from; that of the Talos version if not given, with the tag of the variable TAG if that is set
    #[arg(long, value_name = "IMAGE")]
    install_image: Option<String>,
    /// Further names and addresses for the certificates of the Talos and Kubernetes APIs
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    additional_sans: Vec<String>,
    /// Domain of services and pods
    #[arg(long, value_name = "DOMAIN", default_value = "cluster.local")]
    dns_domain: String,
    /// Form of the machine configs; there is only one
    #[arg(long, value_name = "VERSION", default_value = "v1alpha1")]
    version: String,
    /// Talos version to generate for, such as v1.13; the newest that is known if not given
    #[arg(long, value_name = "VERSION", value_parser = values::talos_version_if_any)]
    talos_version: Option<String>,
    /// Kubernetes version; the newest that the Talos version runs if not given, Talos's own choice if empty
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<String>,
    /// Patch all machine configs: a patch, or @FILE to read one; may be given several times
    #[arg(long, value_name = "PATCH")]
    config_patch: Vec<String>,
    /// Patch the machine config of control planes
    #[arg(long, value_name = "PATCH")]
    config_patch_control_plane: Vec<String>,
    /// Patch the machine config of workers
    #[arg(long, value_name = "PATCH")]
    config_patch_worker: Vec<String>,
    /// Pull images of a registry from elsewhere: HOST=URL
    #[arg(long, value_name = "HOST=URL", value_delimiter = ',')]
    registry_mirror: Vec<String>,
    /// Show settings that many want, as comments
    #[arg(long, default_value = "true")]
    with_examples: bool,
    /// Say in comments what fields do
    #[arg(long, default_value = "true")]
    with_docs: bool,
    /// Let nodes find each other through the discovery service
    #[arg(long, default_value = "true")]
    with_cluster_discovery: bool,
    /// Connect nodes by an encrypted mesh
    #[arg(long)]
    with_kubespan: bool,
    /// Use the secrets of this file instead of fresh ones, - for standard input
    #[arg(long, value_name = "FILE")]
    with_secrets: Option<String>,
    /// What to generate: controlplane, worker, talosconfig
    #[arg(
        short = 't',
        long,
        value_name = "TYPE",
        value_delimiter = ',',
        default_value = "controlplane,worker,talosconfig"
    )]
    output_types: Vec<String>,
    /// Folder to write to, or the file if only one type is generated, - for standard output
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Folder to write to, however many types are generated
    #[arg(long, value_name = "DIR", hide = true, conflicts_with = "output")]
    output_dir: Option<PathBuf>,
    /// Accepted for scripts: has to be true
    #[arg(short, long, default_value = "true", hide = true)]
    persist: bool,
    /// How to print what was written: table or json
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = text_format)]
    format: Format,
}

/// What can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Machine(MachineType),
    Talosconfig,
}

impl Kind {
    const ALL: [(&'static str, &'static str, Self); 3] = [
        (
            "controlplane",
            "controlplane.yaml",
            Self::Machine(MachineType::ControlPlane),
        ),
        ("worker", "worker.yaml", Self::Machine(MachineType::Worker)),
        ("talosconfig", "talosconfig", Self::Talosconfig),
    ];
}

/// Runs the command.
pub(crate) fn run(args: Args, force: bool, session: &mut Session) -> Result<Outcome, Error> {
    let places = places(&args)?;
    let paths: Vec<PathBuf> = places.iter().map(|(.., path)| path.clone()).collect();
    outputs::check_inputs(&paths, inputs(&args))?;
    let params = params(&args, session)?;
    if params.kube_span && !params.discovery {
        session
            .output
            .warn("the mesh of --with-kubespan needs --with-cluster-discovery: Talos refuses a config with one alone");
    }
    let schema = Schema::for_talos(&params.release.contract().to_string());
    let patches = Patches {
        both: input::read(session, "--config-patch", &args.config_patch)?,
        control_plane: input::read(
            session,
            "--config-patch-control-plane",
            &args.config_patch_control_plane,
        )?,
        worker: input::read(session, "--config-patch-worker", &args.config_patch_worker)?,
    };
    outputs::check(&paths, force)?;
    let now = now(session)?;
    let secrets = match &args.with_secrets {
        Some(path) => read_secrets(path, session)?,
        None => {
            session.output.note("Making authorities, keys and tokens");
            let contract = params.release.contract();
            Secrets::generate(contract, now, &mut talos_pki::fill_random)
                .map_err(|error| invalid(&error))?
        }
    };
    let mut made = Vec::with_capacity(places.len());
    for (name, kind, path) in places {
        let text = match kind {
            Kind::Talosconfig => talosconfig(&params, &secrets, now),
            Kind::Machine(kind) => machine_config(kind, &params, &secrets),
        };
        let text = text.map_err(|error| invalid(&error))?;
        let text = match kind {
            Kind::Talosconfig => text,
            Kind::Machine(kind) => patches.apply(kind, &text, schema, session)?,
        };
        made.push(Output::new(name, path, text));
    }
    outputs::write(made, force, session)
}

/// Returns the files that are read.
fn inputs(args: &Args) -> impl Iterator<Item = &Path> {
    let patches = [
        &args.config_patch,
        &args.config_patch_control_plane,
        &args.config_patch_worker,
    ];
    let patches = patches.into_iter().flatten();
    let patches = patches.filter_map(|patch| input::file_of(patch));
    patches.chain(args.with_secrets.as_deref()).map(Path::new)
}

/// Finds out what to generate, and where it goes.
fn places(args: &Args) -> Result<Vec<(&'static str, Kind, PathBuf)>, Error> {
    let usage = |message: String| Error::new(Code::Usage, message);
    let mut chosen = Vec::new();
    for name in &args.output_types {
        let known = Kind::ALL.into_iter().find(|(known, ..)| known == name);
        let known = known.ok_or_else(|| {
            usage(format!("--output-types: nothing is called {name:?}"))
                .hint("there are controlplane, worker and talosconfig")
        })?;
        if !chosen.contains(&known) {
            chosen.push(known);
        }
    }
    let folder = |folder: &Path| {
        let place =
            |(name, file, kind): (&'static str, &str, Kind)| (name, kind, folder.join(file));
        chosen.iter().copied().map(place).collect()
    };
    match (&args.output_dir, &args.output, &chosen[..]) {
        (_, _, []) => Err(usage("there is no output type to generate".to_owned())),
        (Some(dir), ..) => Ok(folder(dir)),
        (None, Some(path), [(name, _, kind)]) => Ok(vec![(name, *kind, path.clone())]),
        (None, Some(path), _) if is_stdout(path) => Err(usage(
            "--output -: standard output takes one type only".to_owned(),
        )
        .hint("choose one with --output-types")),
        (None, Some(path), _) => Ok(folder(path)),
        (None, None, _) => Ok(folder(Path::new(""))),
    }
}

fn params(args: &Args, session: &mut Session) -> Result<Params, Error> {
    if args.version != "v1alpha1" {
        let message = format!(
            "--version {:?}: no machine config has this form",
            args.version
        );
        return Err(Error::new(Code::Usage, message).hint("the only one is v1alpha1"));
    }
    if !args.persist {
        return Err(Error::new(
            Code::Usage,
            "--persist=false: a machine config has to persist",
        ));
    }
    let endpoint = Endpoint::parse(&args.endpoint).map_err(|error| invalid(&error))?;
    let release = release(args.talos_version.as_deref(), session)?;
    let mut params = Params::new(&args.name, endpoint, release);
    if let Some(tag) = session.env.get("TAG") {
        params.install_image = params.release.installer(tag);
    }
    if let Some(image) = &args.install_image {
        params.install_image.clone_from(image);
    }
    if let Some(version) = &args.kubernetes_version {
        let plain = version.strip_prefix('v').unwrap_or(version);
        plain.clone_into(&mut params.kubernetes_version);
    }
    params.install_disk.clone_from(&args.install_disk);
    params.additional_sans.clone_from(&args.additional_sans);
    params.dns_domain.clone_from(&args.dns_domain);
    params.kube_span = args.with_kubespan;
    params.discovery = args.with_cluster_discovery;
    params.comments = Comments {
        docs: args.with_docs,
        examples: args.with_examples,
    };
    for mirror in &args.registry_mirror {
        params
            .add_registry_mirror(mirror)
            .map_err(|error| invalid(&error))?;
    }
    // Before keys are made, which takes a while.
    params.check().map_err(|error| invalid(&error))?;
    for warning in params.warnings() {
        session.output.warn(&warning);
    }
    Ok(params)
}

/// Reads a secrets bundle.
fn read_secrets(path: &str, session: &mut Session) -> Result<Secrets, Error> {
    let text = input::text_for(session, &format!("--with-secrets {path}"), path)?;
    session.output.learn_secrets_of(&text);
    let found = Secrets::read_with_warnings(&text)
        .map_err(|error| invalid(&error).context(format!("{path} cannot be used as secrets")))?;
    for warning in &found.warnings {
        session.output.warn(&format!("{path}: {warning}"));
    }
    Ok(found.secrets)
}

/// The patches of the command line.
struct Patches {
    both: Vec<Patch>,
    control_plane: Vec<Patch>,
    worker: Vec<Patch>,
}

impl Patches {
    fn apply(
        &self,
        kind: MachineType,
        text: &str,
        schema: Schema,
        session: &mut Session,
    ) -> Result<String, Error> {
        let (name, flag, own) = match kind {
            MachineType::ControlPlane => (
                "controlplane",
                "--config-patch-control-plane",
                &self.control_plane,
            ),
            MachineType::Worker => ("worker", "--config-patch-worker", &self.worker),
        };
        let options = Options {
            strict: true,
            ..Options::from(schema)
        };
        let mut text = text.to_owned();
        for (flag, patches) in [("--config-patch", &self.both), (flag, own)] {
            if patches.is_empty() {
                continue;
            }
            let patched = apply_with(&text, patches, &options).map_err(|error| {
                input::invalid(&error)
                    .context(format!("the {name} config cannot be patched by {flag}"))
            })?;
            for warning in &patched.warnings {
                session.output.warn(&format!("{name}: {warning}"));
            }
            text = patched.text;
        }
        Ok(text)
    }
}
