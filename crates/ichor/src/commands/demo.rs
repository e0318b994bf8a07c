//! `ichor demo`: the main job on a simulated cluster behind NAT, as the commands a user would type.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use talos_certs::{ProbeOptions, verified_handshake};
use talos_pki::{Certificate, Name};
use talos_sim::{Cluster, Options};

use crate::commands::sim;
use crate::env::Env;
use crate::error::{Code, Error, Outcome};
use crate::io::Io;
use crate::session::{self, Session};

/// Play the main job on a simulated cluster
///
/// Two control planes on Kubernetes 1.33.4 behind NAT, reached through forwarded loopback ports as on Docker Desktop: an
/// address is missing in their certificates, is added, and Kubernetes is upgraded. Nothing outside a temporary folder and
/// loopback is touched.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// The address by which users want to reach the API server.
const WANTED: &str = "172.30.0.11";

/// Adds it, and keeps the addresses that work today.
const PATCH: &str = r#"[{"op":"replace","path":"/cluster/apiServer/certSANs","value":["172.30.0.11","10.5.10.2","127.0.0.1"]}]"#;

/// How long a re-issued certificate may take to be served.
const SERVED_WITHIN: Duration = Duration::from_secs(20);

/// Runs the verb.
pub(crate) fn run(_args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let start = Instant::now();
    let folder = sim::temporary_folder()?;
    let options = Options {
        controlplanes: 2,
        workers: 0,
        nat: true,
        api_server_cert_sans: vec!["10.5.10.2".to_owned(), "127.0.0.1".to_owned()],
        ..Options::default()
    };
    let cluster = session.runtime()?.run(async {
        Cluster::start(options)
            .await
            .map_err(|error| Error::of(Code::Failed, &error))
    })?;
    let stage = Stage::new(session, &cluster, folder.path())?;
    play(session, &cluster, &stage)?;
    session.output.line("")?;
    session.output.line(&format!(
        "done in {:.1} s; the cluster was simulated, every connection was real",
        start.elapsed().as_secs_f64()
    ))?;
    Ok(Outcome::Done)
}

fn play(session: &mut Session, cluster: &Cluster, stage: &Stage) -> Result<(), Error> {
    let forwarded = stage.forwarded.to_string();
    let both = stage.nodes.join(",");
    let first = stage.nodes[0].as_str();
    let endpoint = "jsonpath={.spec.endpoints[0]}";

    stage.says(session, "two control planes behind NAT: their addresses cannot be dialled from here, forwarded ports can")?;
    stage.type_in(session, &["get", "members", "-n", first], 0)?;
    stage.says(
        session,
        "the names that the API server's certificate is made for",
    )?;
    stage.type_in(
        session,
        &["get", "certsans", "k8s", "-n", first, "-o", "yaml"],
        0,
    )?;
    stage.says(
        session,
        "172.30.0.11 is not covered; 127.0.0.1, the way in, is (exit code 3: something was found)",
    )?;
    let check = [
        "certs",
        "check",
        "--server=kube-apiserver",
        "--expect",
        "172.30.0.11,127.0.0.1",
        "--k8s-endpoint",
        &forwarded,
    ];
    stage.type_in(session, &check, 3)?;
    stage.says(session, "what a patch would change, then the patch")?;
    stage.type_in(
        session,
        &["patch", "mc", "-n", &both, "--dry-run", "-p", PATCH],
        0,
    )?;
    stage.type_in(session, &["patch", "mc", "-n", &both, "-p", PATCH], 0)?;
    stage.says(
        session,
        "wait until the served certificate covers the address: a handshake verified for that name",
    )?;
    prove(session, cluster.kubernetes_authority(), stage.forwarded)?;
    stage.type_in(session, &check, 0)?;

    stage.says(
        session,
        "upgrade Kubernetes through the forwarded port, first as a plan",
    )?;
    let upgrade = [
        "upgrade-k8s",
        "-n",
        first,
        "--to",
        "1.34.0",
        "--k8s-endpoint",
        &forwarded,
    ];
    stage.type_in(session, &[&upgrade[..], &["--dry-run"]].concat(), 0)?;
    stage.type_in(session, &[&upgrade[..], &["--yes"]].concat(), 0)?;
    stage.says(
        session,
        "both nodes run 1.34.0, and the cluster's endpoint is what it was",
    )?;
    let image = "jsonpath={.spec.image}";
    stage.type_in(
        session,
        &["get", "kubeletspecs", "-n", &both, "-o", image],
        0,
    )?;
    stage.type_in(
        session,
        &["get", "apiserverconfigs", "-n", &both, "-o", image],
        0,
    )?;
    stage.type_in(
        session,
        &["get", "kubeprismconfigs", "-n", &both, "-o", endpoint],
        0,
    )
}

/// Where the commands of the demonstration run.
struct Stage {
    env: Env,
    /// The forwarded port of the first control plane's API server.
    forwarded: SocketAddr,
    /// The nodes' own addresses.
    nodes: Vec<String>,
}

impl Stage {
    fn new(session: &mut Session, cluster: &Cluster, folder: &Path) -> Result<Self, Error> {
        let talosconfig = sim::write(folder, "talosconfig", &sim::talosconfig(cluster)?)?;
        let kubeconfig = sim::write(folder, "kubeconfig", &cluster.kubeconfig())?;
        let forwarded = cluster.nodes()[0].kube_dial().ok_or_else(|| {
            Error::new(
                Code::Failed,
                "the simulated cluster forwards no port of its API server",
            )
        })?;
        session
            .output
            .line(&format!("export TALOSCONFIG={}", talosconfig.display()))?;
        let variables: [(OsString, OsString); 2] = [
            ("TALOSCONFIG".into(), talosconfig.into()),
            ("KUBECONFIG".into(), kubeconfig.into()),
        ];
        Ok(Self {
            env: variables.into_iter().collect(),
            forwarded,
            nodes: cluster
                .nodes()
                .iter()
                .map(|node| node.address().to_string())
                .collect(),
        })
    }

    /// Says what comes next.
    fn says(&self, session: &mut Session, what: &str) -> Result<(), Error> {
        session.output.line("")?;
        session.output.line(&format!("# {what}"))
    }

    /// Prints a command as a user would type it, runs it as they would get it, and requires its exit code.
    fn type_in(&self, session: &mut Session, args: &[&str], expected: u8) -> Result<(), Error> {
        let typed: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
        let command = format!("ichor {}", typed.join(" "));
        session.output.line(&format!("$ {command}"))?;
        session.output.flush()?;
        let args = std::iter::once("ichor").chain(args.iter().copied());
        let exit = session::run(
            args.map(OsString::from).collect(),
            self.env.clone(),
            Io::of_process(),
        );
        if exit == expected {
            return Ok(());
        }
        Err(Error::new(
            Code::Failed,
            format!("`{command}` ended with exit code {exit} instead of {expected}"),
        ))
    }
}

/// Waits until a handshake with the API server verifies for the wanted address, trusting the cluster's authority only.
fn prove(
    session: &mut Session,
    authority: &Certificate,
    forwarded: SocketAddr,
) -> Result<(), Error> {
    let name = Name::parse(WANTED).map_err(|error| Error::of(Code::Failed, &error))?;
    let authorities = [authority.clone()];
    let options = ProbeOptions::default();
    let give_up = Instant::now() + SERVED_WITHIN;
    session.runtime()?.run(async {
        loop {
            let now = Timestamp::now();
            let handshake = verified_handshake(forwarded, &name, &authorities, now, &options)
                .await
                .map_err(|error| Error::of(Code::Failed, &error))?;
            if handshake.is_verified() {
                return Ok(());
            }
            if Instant::now() > give_up {
                return Err(Error::new(
                    Code::TimedOut,
                    format!("{forwarded} presented no certificate for {WANTED}"),
                ));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })?;
    session.output.line(&format!(
        "{forwarded} is verified as {WANTED} at {}",
        Timestamp::now()
    ))
}

fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/@".contains(c);
    if arg.chars().all(plain) {
        arg.to_owned()
    } else {
        format!("'{arg}'")
    }
}
