//! `ichor certs list`: every certificate of a cluster, once.

pub(super) mod disk;
mod print;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use talos_certs::{
    CollectOptions, Evidence, InventorySource, KubernetesAccess, NotChecked, ServerKind, collect,
    collect_kubernetes, list,
};
use talos_client::{Client, Kind};
use talos_config::kubeconfig::Kubeconfig;
use talos_kube::{Access, Address, Kubernetes, Options, Patience, reach, reach_through};

use super::gather::{kubeconfig, options_of};
use crate::connect::{Look, system_roots};
use crate::error::{Code, Error, Outcome};
use crate::output::OutputArgs;
use crate::session::Session;
use crate::values;

/// Control plane nodes that are asked for a kubeconfig until one has it.
const ASKED: usize = 5;

/// List every certificate with its places, its issuer, its end, and who renews it
///
/// Looks at all TLS servers of the nodes, at their certificate resources (which takes os:admin), at Kubernetes, and at the
/// talosconfig; with targets and without --source, at the targets only. A certificate that is in several places is listed
/// once. What cannot be looked at is said and ends nothing.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files, folders or servers (HOST:PORT) to look at
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Look here only: servers, resources, kubernetes, files
    #[arg(long, value_name = "SOURCE", value_delimiter = ',', value_parser = source)]
    source: Vec<InventorySource>,
    /// Look at this server too
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = address)]
    server_address: Vec<Address>,
    /// List only what ends within this time, such as 720h or 30d
    #[arg(long, value_name = "DURATION", value_parser = values::period)]
    expiring: Option<Duration>,
    /// Reach Kubernetes with this kubeconfig, and list its certificates
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Dial Kubernetes here, such as a forwarded port
    #[arg(long, value_name = "HOST:PORT", value_parser = kubernetes_address)]
    k8s_endpoint: Option<Address>,
    /// Show every place, name and fingerprint
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Runs the verb.
pub(super) fn run(args: &Args, session: &mut Session) -> Result<Outcome, Error> {
    let mut evidence = Evidence::default();
    let mut servers = args.server_address.clone();
    let mut paths = Vec::new();
    for target in &args.targets {
        match Target::of(target)? {
            Target::Path(path) => paths.push(path),
            Target::Server(address) => servers.push(address),
        }
    }
    let looks = |source: InventorySource| match (args.source.is_empty(), args.targets.is_empty()) {
        (true, only_cluster) => only_cluster,
        (false, _) => args.source.contains(&source),
    };
    let cluster = looks(InventorySource::Servers)
        || looks(InventorySource::Resources)
        || looks(InventorySource::Kubernetes);
    let kubeconfig = args.kubeconfig.as_deref().map(kubeconfig).transpose()?;
    if cluster {
        let look = session.looking()?;
        let options = Reaching {
            options: collect_options(&look, args, kubeconfig.as_ref(), servers, &looks)?,
            kubernetes: looks(InventorySource::Kubernetes),
            kubeconfig,
            patience: Patience {
                outage: session.global.request_timeout,
                ..session.patience()
            },
        };
        let client = Client::new(look.options);
        let runtime = session.runtime()?;
        evidence = runtime.run(async { Ok(options.gather(client.as_ref()).await) })?;
    } else if !servers.is_empty() {
        let options = CollectOptions {
            kinds: Vec::new(),
            servers,
            concurrency: session.global.concurrency.get(),
            timeout: session.global.connect_timeout,
            ..CollectOptions::default()
        };
        let nobody = talos_client::Error::NoEndpoints;
        let runtime = session.runtime()?;
        evidence = runtime.run(async { Ok(collect(Err(&nobody), &options).await) })?;
    }
    if looks(InventorySource::Files) {
        let place = session.talosconfig_place().ok().map(|place| place.path);
        let own = place.into_iter().filter(|path| path.exists());
        paths.extend(own.chain(args.kubeconfig.clone()));
    }
    for path in &paths {
        disk::take(path, &mut evidence);
    }
    let now = Timestamp::now();
    let mut inventory = list(&evidence, now);
    let found = !inventory.certificates.is_empty();
    if let Some(within) = args.expiring {
        inventory.keep_expiring(SignedDuration::try_from(within).unwrap_or(SignedDuration::MAX));
    }
    let output = &mut session.output;
    if !output.data(&inventory)? {
        print::inventory(output, &inventory, args.wide, now)?;
    }
    match found {
        true => Ok(Outcome::Done),
        false => Err(
            Error::new(Code::Unreachable, "no certificate could be looked at")
                .hint("what was tried is listed above"),
        ),
    }
}

/// What a target on the command line is.
pub(super) enum Target {
    /// A file or folder.
    Path(PathBuf),
    /// A server.
    Server(Address),
}

impl Target {
    /// Tells what a target is: what exists as a file is one.
    pub(super) fn of(text: &str) -> Result<Self, Error> {
        let path = Path::new(text);
        if path.exists() {
            return Ok(Self::Path(path.to_owned()));
        }
        match address(text) {
            Ok(address) => Ok(Self::Server(address)),
            Err(why) => Err(Error::new(
                Code::Invalid,
                format!("{text:?} is neither a file nor a server"),
            )
            .cause("there is no such file or folder")
            .cause(why)),
        }
    }
}

/// What to look at, and how Kubernetes is reached.
struct Reaching {
    options: CollectOptions,
    kubernetes: bool,
    kubeconfig: Option<Kubeconfig>,
    patience: Patience,
}

impl Reaching {
    async fn gather(&self, client: Result<&Client, &talos_client::Error>) -> Evidence {
        let mut evidence = collect(client, &self.options).await;
        if self.kubernetes {
            match self.reach(client, &evidence).await {
                Ok(kubernetes) => collect_kubernetes(&kubernetes, &mut evidence).await,
                Err(why) => evidence.not_checked.push(NotChecked {
                    node: "kubernetes".to_owned(),
                    kind: None,
                    why,
                }),
            }
        }
        evidence
    }

    async fn reach(
        &self,
        client: Result<&Client, &talos_client::Error>,
        evidence: &Evidence,
    ) -> Result<Kubernetes, String> {
        if let Some(kubeconfig) = &self.kubeconfig {
            let access = Access::from_kubeconfig(kubeconfig, None).map_err(|error| told(&error))?;
            return reach(&access, self.reach_options())
                .await
                .map_err(|error| told(&error));
        }
        let client = client.map_err(|_| "there is no kubeconfig, and no client to get one with")?;
        let mut failure = "no control plane node is known that could give a kubeconfig".to_owned();
        let asked = evidence
            .nodes
            .iter()
            .filter(|facts| facts.control_plane == Some(true));
        for facts in asked.take(ASKED) {
            let node = client.node(&facts.node);
            match node.kubeconfig().await {
                Ok(kubeconfig) => {
                    return reach_through(&node, &kubeconfig, self.reach_options())
                        .await
                        .map_err(|error| told(&error));
                }
                Err(error) if error.kind() == Kind::NotAllowed => {
                    return Err(format!("there is no kubeconfig: {}", told(&error)));
                }
                Err(error) => failure = told(&error),
            }
        }
        Err(failure)
    }

    fn reach_options(&self) -> Options {
        Options {
            endpoint: self.options.k8s_endpoint.as_ref().map(Address::to_string),
            patience: self.patience,
            search: self.patience.connect,
            system_roots,
            ..Options::new(Timestamp::now())
        }
    }
}

/// Joins an error and its causes.
fn told(error: &(dyn std::error::Error + 'static)) -> String {
    Error::of(Code::Failed, error).sentence()
}

fn collect_options(
    look: &Look,
    args: &Args,
    kubeconfig: Option<&Kubeconfig>,
    servers: Vec<Address>,
    looks: &dyn Fn(InventorySource) -> bool,
) -> Result<CollectOptions, Error> {
    let kubernetes = match kubeconfig {
        Some(kubeconfig) => KubernetesAccess::from_kubeconfig(kubeconfig)
            .map_err(|error| Error::of(Code::Invalid, &error))?,
        None => KubernetesAccess::default(),
    };
    Ok(CollectOptions {
        k8s_endpoint: args.k8s_endpoint.clone(),
        kubernetes: KubernetesAccess {
            // Its certificates are listed as those of a file.
            client: None,
            ..kubernetes
        },
        kinds: match looks(InventorySource::Servers) {
            true => ServerKind::OF_NODES.to_vec(),
            false => Vec::new(),
        },
        servers,
        resources: looks(InventorySource::Resources),
        ..options_of(look)?
    })
}

fn source(text: &str) -> Result<InventorySource, String> {
    InventorySource::ALL
        .into_iter()
        .find(|source| source.as_str() == text)
        .ok_or_else(|| format!("`{text}` is none of servers, resources, kubernetes, files"))
}

/// Reads `HOST:PORT`; there is no port that all servers have.
pub(super) fn address(text: &str) -> Result<Address, String> {
    let written = talos_client::split(text.trim()).map_err(|error| error.to_string())?;
    if written.port.is_none() && written.scheme.is_none() {
        return Err(format!("{text:?} names no port; a server is HOST:PORT"));
    }
    let address = Address::parse(text).map_err(|error| error.to_string())?;
    let port = written.port.unwrap_or(443);
    Ok(Address { port, ..address })
}

fn kubernetes_address(text: &str) -> Result<Address, String> {
    Address::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_needs_a_port() {
        let check = |text: &str, expected: Option<&str>| {
            let read = address(text).ok().map(|address| address.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        };
        check("10.5.0.2:50001", Some("10.5.0.2:50001"));
        check("[fd00::1]:6443", Some("[fd00::1]:6443"));
        check("https://lb.example:8443", Some("lb.example:8443"));
        check("https://lb.example", Some("lb.example:443"));
        check("lb.example", None);
        check("fd00::1", None);
        check("lb.example:0", None);
        check("http://lb.example:80", None);
    }
}
