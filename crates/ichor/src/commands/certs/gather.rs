//! What the verbs of `ichor certs` look at, and how it is gathered and judged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use talos_certs::{
    CheckOptions, CollectOptions, Evidence, ExpectedName, KubernetesAccess, Report, ServerKind,
    check, collect, read_expectations,
};
use talos_client::{Client, Endpoint, Security};
use talos_config::kubeconfig::Kubeconfig;
use talos_kube::Address;
use talos_pki::Name;

use crate::connect::Look;
use crate::error::{Code, Error, Outcome};
use crate::files;
use crate::session::Session;
use crate::values;

/// Where to look, and what to expect there.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct GatherArgs {
    /// Expect this name or address too, of apid and kube-apiserver or of one kind of server: etcd=NAME
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = expected_name)]
    expect: Vec<ExpectedName>,
    /// Expect the names of this file: a YAML list of `target` (a kind of server, a node, NODE/KIND or all) and `names`
    #[arg(long, value_name = "FILE")]
    expect_file: Option<PathBuf>,
    /// Report names in certificates by which nobody is known to reach the server
    #[arg(long)]
    unexpected: bool,
    /// Look at these kinds of servers: apid, trustd, kube-apiserver, kubelet, etcd, etcd-peer, kubeprism or all
    #[arg(long, value_name = "KIND", value_delimiter = ',', default_value = "apid,kube-apiserver", value_parser = server_kinds)]
    server: Vec<Kinds>,
    /// Report certificates that end within this time, such as 720h or 30d
    #[arg(long, alias = "expiring", value_name = "DURATION", default_value = "0", value_parser = values::period)]
    warn_within: Duration,
    /// Dial Kubernetes here, such as a forwarded port
    #[arg(long, value_name = "HOST:PORT")]
    k8s_endpoint: Option<String>,
    /// Judge against the server of this kubeconfig, and its client certificate
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Everything that is needed to look, once or many times.
pub(super) struct Gatherer {
    client: Result<Client, talos_client::Error>,
    pub(super) collecting: CollectOptions,
    checking: CheckOptions,
}

/// What was seen, and the verdict.
pub(super) struct Judged {
    /// What was seen.
    pub(super) evidence: Evidence,
    /// The verdict.
    pub(super) report: Report,
    /// When.
    pub(super) at: Timestamp,
}

impl Gatherer {
    pub(super) fn new(args: &GatherArgs, session: &mut Session) -> Result<Self, Error> {
        let look = session.looking()?;
        Ok(Self {
            collecting: collect_options(args, &look)?,
            checking: CheckOptions {
                expected: expected(args)?,
                unexpected: args.unexpected,
                warn_within: SignedDuration::try_from(args.warn_within)
                    .unwrap_or(SignedDuration::MAX),
            },
            client: Client::new(look.options),
        })
    }

    /// Looks and judges.
    pub(super) async fn judge(&self) -> Judged {
        let evidence = collect(self.client.as_ref(), &self.collecting).await;
        let at = Timestamp::now();
        let report = check(&evidence, &self.checking, at);
        Judged {
            evidence,
            report,
            at,
        }
    }
}

impl Judged {
    /// Tells how a run ends that found this.
    pub(super) fn outcome(&self) -> Result<Outcome, Error> {
        if self.report.has_findings() {
            return Ok(Outcome::Found);
        }
        if self.report.servers.is_empty() {
            return Err(
                Error::new(Code::Unreachable, "no certificate could be looked at")
                    .hint("what was tried is listed above"),
            );
        }
        // Nothing found among what answered says nothing about the rest.
        Ok(match self.report.has_failures() {
            true => Outcome::SomeNodesFailed,
            false => Outcome::Done,
        })
    }
}

fn collect_options(args: &GatherArgs, look: &Look) -> Result<CollectOptions, Error> {
    let k8s_endpoint = args.k8s_endpoint.as_deref().map(|text| {
        Address::parse(text).map_err(|error| {
            Error::new(Code::Usage, "--k8s-endpoint cannot be used").caused_by(&error)
        })
    });
    let identity = match &look.options.security {
        Security::Mutual(credentials) => credentials.identity.as_ref(),
        Security::Maintenance { .. } => None,
    };
    let leaf = identity.and_then(|identity| identity.chain.first());
    Ok(CollectOptions {
        talos_client: leaf.map(|leaf| {
            let place = format!("talosconfig context {:?}", look.context);
            (place, leaf.clone())
        }),
        k8s_endpoint: k8s_endpoint.transpose()?,
        kubernetes: kubernetes(args)?,
        kinds: kinds(args),
        ..options_of(look)?
    })
}

/// Takes what the flags and the talosconfig say of where nodes are and whom to trust.
pub(super) fn options_of(look: &Look) -> Result<CollectOptions, Error> {
    let endpoints = look.options.endpoints.iter().map(|text| {
        text.parse::<Endpoint>().map_err(|error| {
            let message = format!("the endpoint {text:?} cannot be used");
            Error::new(Code::Invalid, message).caused_by(&error)
        })
    });
    Ok(CollectOptions {
        nodes: look.nodes.clone(),
        endpoints: endpoints.collect::<Result<_, _>>()?,
        talos_authorities: match &look.options.security {
            Security::Mutual(credentials) => credentials.authorities.clone(),
            Security::Maintenance { .. } => Vec::new(),
        },
        concurrency: look.concurrency,
        timeout: look.options.connect_timeout,
        ..CollectOptions::default()
    })
}

/// Reads a kubeconfig.
pub(super) fn kubeconfig(path: &Path) -> Result<Kubeconfig, Error> {
    let text = files::read(path)?;
    Kubeconfig::parse(path.display().to_string(), &text)
        .map_err(|error| Error::of(Code::Invalid, &error))
}

fn kubernetes(args: &GatherArgs) -> Result<KubernetesAccess, Error> {
    let Some(path) = &args.kubeconfig else {
        return Ok(KubernetesAccess::default());
    };
    KubernetesAccess::from_kubeconfig(&kubeconfig(path)?)
        .map_err(|error| Error::of(Code::Invalid, &error))
}

/// Returns the kinds of servers to look at, each once.
fn kinds(args: &GatherArgs) -> Vec<ServerKind> {
    let all = ServerKind::OF_NODES.into_iter();
    let wanted = |kind: &ServerKind| args.server.iter().any(|Kinds(kinds)| kinds.contains(kind));
    all.filter(wanted).collect()
}

/// Returns the names that the flags and the file expect.
fn expected(args: &GatherArgs) -> Result<Vec<ExpectedName>, Error> {
    let mut expected = args.expect.clone();
    if let Some(path) = &args.expect_file {
        let text = files::read(path)?;
        let read = read_expectations(&path.display().to_string(), &text);
        expected.extend(read.map_err(|problems| {
            let what = "--expect-file cannot be used";
            let error = Error::new(Code::Invalid, what);
            let problems = problems.iter().map(ToString::to_string);
            problems.fold(error, Error::cause)
        })?);
    }
    Ok(expected)
}

/// Reads `NAME` or `KIND=NAME`.
fn expected_name(text: &str) -> Result<ExpectedName, String> {
    let (kind, name) = match text.split_once('=') {
        Some((kind, name)) => (Some(server_kind(kind)?), name),
        None => (None, text),
    };
    let name = Name::parse(name).map_err(|error| error.to_string())?;
    Ok(ExpectedName {
        kind,
        node: None,
        name,
    })
}

/// Kinds of servers that one word stands for.
#[derive(Clone, Debug)]
struct Kinds(Vec<ServerKind>);

fn server_kinds(text: &str) -> Result<Kinds, String> {
    match text {
        "all" => Ok(Kinds(ServerKind::OF_NODES.to_vec())),
        _ => server_kind(text).map(|kind| Kinds(vec![kind])),
    }
}

fn server_kind(text: &str) -> Result<ServerKind, String> {
    let mut kinds = ServerKind::OF_NODES.into_iter();
    kinds.find(|kind| kind.as_str() == text).ok_or_else(|| {
        let known = ServerKind::OF_NODES.map(ServerKind::as_str).join(", ");
        format!("`{text}` is no kind of server: {known}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_expected_of_all_servers_or_of_one_kind() {
        let check = |text: &str, expected: Option<(Option<ServerKind>, &str)>| {
            let read = expected_name(text).ok();
            let expected = expected.map(|(kind, name)| ExpectedName {
                kind,
                node: None,
                name: Name::parse(name).unwrap(),
            });
            assert_eq!(read, expected, "{text}");
        };
        check("172.30.0.11", Some((None, "172.30.0.11")));
        check(
            "apid=lb.example",
            Some((Some(ServerKind::Apid), "lb.example")),
        );
        check(
            "kube-apiserver=fd00::1",
            Some((Some(ServerKind::KubeApiserver), "fd00::1")),
        );
        check("etcd=10.5.0.2", Some((Some(ServerKind::Etcd), "10.5.0.2")));
        check("nothing=lb.example", None);
        check("https://lb.example", None);
        check("", None);
    }
}
