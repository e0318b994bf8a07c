//! `ichor sim`: simulated clusters for people and their scripts.

mod given;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use talos_config::talosconfig::TalosConfig;
use talos_sim::{Cluster, MachineType, Options, TalosVersion};

use crate::error::{Code, Error, Outcome};
use crate::files::{self, Access};
use crate::output::{Format, Output, OutputArgs, columns};
use crate::session::Session;
use crate::values;

/// Run a simulated cluster
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Up(Up),
}

/// Start a simulated cluster and keep it running until stopped
///
/// Writes a talosconfig and a kubeconfig for it, never into ~/.talos or ~/.kube, and prints where they are.
#[derive(Debug, clap::Args)]
struct Up {
    /// Boot with the machine configs of this folder, as `ichor gen config` writes them; a talosconfig that is there too
    /// is copied with endpoints and nodes filled in
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "kubernetes_version"])]
    config_dir: Option<PathBuf>,
    /// Name of the cluster and of the talosconfig's context
    #[arg(long, value_name = "NAME", default_value = "cluster-1")]
    name: String,
    /// Number of control planes
    #[arg(long, value_name = "N", default_value = "1")]
    controlplanes: usize,
    /// Number of workers
    #[arg(long, value_name = "N", default_value = "1")]
    workers: usize,
    /// Number of machines that wait for a configuration
    #[arg(long, value_name = "N", default_value = "0")]
    maintenance: usize,
    /// Give nodes addresses that cannot be dialled; only forwarded loopback ports can
    #[arg(long)]
    nat: bool,
    /// Talos version to behave as: 1.11, 1.13 or 1.14; 1.13 if not given, or the one that the machine configs install
    #[arg(long, value_name = "VERSION", value_parser = talos_version)]
    talos_version: Option<TalosVersion>,
    /// Kubernetes version to start with
    #[arg(long, value_name = "VERSION", default_value = "1.33.4")]
    kubernetes_version: String,
    /// Write talosconfig and kubeconfig into this folder instead of a temporary one
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// What a started cluster tells its user.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Started {
    /// Name of the cluster.
    name: String,
    /// The Talos version of its nodes.
    talos_version: String,
    /// The Kubernetes version it started with.
    kubernetes_version: String,
    /// The cluster endpoint, as the nodes know it.
    endpoint: String,
    /// The talosconfig that was written.
    talosconfig: PathBuf,
    /// The kubeconfig that was written.
    kubeconfig: PathBuf,
    /// The machines.
    nodes: Vec<Machine>,
}

/// One machine of a simulated cluster.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Machine {
    /// What `-n` takes.
    node: String,
    /// Host name.
    hostname: String,
    /// `controlplane`, `worker` or `unknown`.
    role: &'static str,
    /// Where its Talos API can be dialled.
    #[serde(skip_serializing_if = "Option::is_none")]
    talos: Option<String>,
    /// Where its Kubernetes API can be dialled.
    #[serde(skip_serializing_if = "Option::is_none")]
    kubernetes: Option<String>,
    /// Where each of its servers can be dialled, by name: `apid`, `trustd`, `kube-apiserver`, `kubelet`, `etcd`,
    /// `etcd-peer`, `kubeprism`.
    servers: BTreeMap<&'static str, String>,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let Command::Up(up) = args.command;
    let temporary = match up.dir {
        Some(_) => None,
        None => Some(temporary_folder()?),
    };
    let folder = match (&up.dir, &temporary) {
        (Some(dir), _) => std::path::absolute(dir)?,
        (None, Some(temporary)) => temporary.path().to_owned(),
        (None, None) => PathBuf::new(),
    };
    if let Some(dir) = &up.config_dir {
        keep_talosconfig(dir, &folder)?;
    }
    let given = up
        .config_dir
        .as_deref()
        .map(|dir| given::read(dir, up.workers))
        .transpose()?;
    let installed = given.as_ref().and_then(|given| given.talos_version());
    let talos_version = up.talos_version.or(installed);
    let talos_version = talos_version.unwrap_or(TalosVersion::V1_13_9);
    let options = Options {
        name: up.name,
        controlplanes: up.controlplanes,
        workers: up.workers,
        maintenance: up.maintenance,
        nat: up.nat,
        talos_version,
        configs: given.as_ref().map(|given| given.configs.clone()),
        kubernetes_version: up.kubernetes_version.trim_start_matches('v').to_owned(),
        // Up to Talos 1.12 forwarded ports are covered only if a configuration asks for it, as those of Docker do.
        machine_cert_sans: up.nat.then(|| "127.0.0.1".to_owned()).into_iter().collect(),
        ..Options::default()
    };
    session.runtime()?.run_steps(|mut interrupt| {
        let output = &mut session.output;
        async move {
            let cluster = Cluster::start(options).await.map_err(not_started)?;
            let talosconfig = match &given {
                Some(given) => given.talosconfig(&cluster)?,
                None => talosconfig(&cluster)?,
            };
            let started = Started {
                name: cluster.name().to_owned(),
                talos_version: talos_version.tag().to_owned(),
                kubernetes_version: format!("v{}", cluster.kubernetes_version()),
                endpoint: cluster.endpoint().to_owned(),
                talosconfig: write(&folder, "talosconfig", &talosconfig)?,
                kubeconfig: write(&folder, "kubeconfig", &cluster.kubeconfig())?,
                nodes: cluster.nodes().iter().map(machine).collect(),
            };
            announce(output, &started)?;
            interrupt.wait().await;
            Ok(())
        }
    })?;
    Ok(Outcome::Done)
}

/// Refuses to write the cluster's talosconfig over the one that the machine configs came with.
fn keep_talosconfig(config_dir: &Path, folder: &Path) -> Result<(), Error> {
    let real = |folder: &Path| std::fs::canonicalize(folder.join("talosconfig")).ok();
    let given = real(config_dir);
    if given.is_none() || given != real(folder) {
        return Ok(());
    }
    let message = format!(
        "{} would be read and then overwritten",
        config_dir.join("talosconfig").display()
    );
    Err(Error::new(Code::Usage, message)
        .hint("choose another folder with --dir, or leave it out for a temporary one"))
}

fn not_started(error: talos_sim::Error) -> Error {
    let code = match error {
        talos_sim::Error::Config { .. } => Code::Invalid,
        _ => Code::Failed,
    };
    Error::of(code, &error).context("failed to start the simulated cluster")
}

fn announce(output: &mut Output, started: &Started) -> Result<(), Error> {
    match output.format() {
        // One line, so that a script can read it while the cluster goes on.
        Format::Json | Format::Ndjson => output.json_line(started)?,
        Format::Yaml => output.yaml(started)?,
        Format::Table | Format::Name | Format::JsonPath(_) => {
            output.line(&format!(
                "{}: Talos {}, Kubernetes {}, endpoint {}",
                started.name, started.talos_version, started.kubernetes_version, started.endpoint
            ))?;
            let mut table = columns(["NODE", "HOSTNAME", "ROLE", "TALOS", "KUBERNETES"]);
            for node in &started.nodes {
                table.add_row([
                    &node.node,
                    &node.hostname,
                    node.role,
                    node.talos.as_deref().unwrap_or_default(),
                    node.kubernetes.as_deref().unwrap_or_default(),
                ]);
            }
            output.table(&table)?;
            output.line(&format!("talosconfig: {}", started.talosconfig.display()))?;
            output.line(&format!("kubeconfig: {}", started.kubeconfig.display()))?;
            let others = others(started);
            if !others.is_empty() {
                output.note(&format!("further servers of the nodes: {others}"));
            }
            output.note("running until stopped with Ctrl-C");
        }
    }
    output.flush()
}

/// Returns an administrator's talosconfig whose context lists the nodes, so that reading commands need no `-n`.
pub(super) fn talosconfig(cluster: &Cluster) -> Result<String, Error> {
    let text = cluster.talosconfig(&["os:admin"]);
    let mut config = TalosConfig::parse("the simulated cluster's talosconfig", &text)?;
    if let Some(name) = config.current().map(str::to_owned) {
        config.set_nodes(&name, &configured(cluster))?;
    }
    Ok(config.text().to_owned())
}

/// Returns the addresses of the machines that do not wait for a configuration.
fn configured(cluster: &Cluster) -> Vec<String> {
    let nodes = cluster.nodes().iter();
    nodes
        .filter(|node| node.machine_type() != MachineType::Unknown)
        .map(|node| node.address().to_string())
        .collect()
}

/// Lists the servers beside the two APIs with their ports, which are the same on all nodes that have them.
fn others(started: &Started) -> String {
    let others = started.nodes.iter().flat_map(|node| {
        let apis = [&node.talos, &node.kubernetes];
        let others = node.servers.iter().filter(move |(_, address)| {
            !apis
                .into_iter()
                .flatten()
                .any(|api| api == address.as_str())
        });
        others.filter_map(|(server, address)| {
            let port = address.strip_prefix(&node.node)?;
            Some(format!("{server}{port}"))
        })
    });
    let distinct: BTreeSet<String> = others.collect();
    distinct.into_iter().collect::<Vec<_>>().join(" ")
}

fn machine(node: &talos_sim::Node) -> Machine {
    Machine {
        node: node.address().to_string(),
        hostname: node.name().to_owned(),
        role: match node.machine_type() {
            MachineType::ControlPlane => "controlplane",
            MachineType::Worker => "worker",
            MachineType::Unknown => "unknown",
        },
        talos: node.dial().map(|address| address.to_string()),
        kubernetes: node.kube_dial().map(|address| address.to_string()),
        servers: node
            .servers()
            .into_iter()
            .map(|(server, address)| (server.name(), address.to_string()))
            .collect(),
    }
}

pub(super) fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Error> {
    let path = folder.join(name);
    files::write(&path, text.as_bytes(), Access::Owner)?;
    Ok(path)
}

pub(super) fn temporary_folder() -> Result<tempfile::TempDir, Error> {
    tempfile::Builder::new()
        .prefix("ichor-sim-")
        .tempdir()
        .map_err(|error| {
            Error::new(Code::Failed, "failed to make a temporary folder").caused_by(&error)
        })
}

fn talos_version(text: &str) -> Result<TalosVersion, String> {
    let text = values::talos_version(text)?;
    TalosVersion::parse(&text).ok_or_else(|| {
        let known: Vec<_> = TalosVersion::ALL
            .iter()
            .map(|version| version.tag())
            .collect();
        format!("`{text}` is none of {}", known.join(", "))
    })
}
