//! `ichor certs`: what servers present, judged against how they are reached.

mod show;

use std::path::PathBuf;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use talos_certs::{
    CheckOptions, CollectOptions, ExpectedName, KubernetesAccess, ServerKind, check, collect,
};
use talos_client::{Client, Endpoint, Security};
use talos_config::kubeconfig::Kubeconfig;
use talos_kube::Address;
use talos_pki::Name;

use crate::connect::Look;
use crate::error::{Code, Error, Outcome};
use crate::files;
use crate::output::OutputArgs;
use crate::session::Session;
use crate::values;

/// Check the certificates of a cluster
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(Check),
}

/// Judge what servers present against the names by which they are reached
///
/// Looks at apid (port 50000) of every node and at kube-apiserver (port 6443) of control planes, also where the server
/// refuses us. What cannot be dialled is judged from the node's resources, which takes os:admin. Behind forwarded loopback
/// ports, nodes are not dialled at their own addresses. Exits with 3 when something was found.
#[derive(Debug, clap::Args)]
struct Check {
    /// Expect this name or address too, of all servers or of one kind: apid=NAME, kube-apiserver=NAME
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = expected_name)]
    expect: Vec<ExpectedName>,
    /// Look at this kind of server only: apid or kube-apiserver
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = server_kind)]
    server: Vec<ServerKind>,
    /// Report certificates that end within this time, such as 720h or 30d
    #[arg(long, alias = "expiring", value_name = "DURATION", default_value = "0", value_parser = period)]
    warn_within: Duration,
    /// Dial Kubernetes here, such as a forwarded port
    #[arg(long, value_name = "HOST:PORT")]
    k8s_endpoint: Option<String>,
    /// Judge against the server of this kubeconfig, and its client certificate
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let Command::Check(args) = args.command;
    let look = session.looking()?;
    let client = Client::new(look.options.clone());
    let options = collect_options(&args, &look)?;
    let now = Timestamp::now();
    let evidence = session
        .runtime()?
        .run(async { Ok(collect(client.as_ref(), &options).await) })?;
    let warn_within = SignedDuration::try_from(args.warn_within).unwrap_or(SignedDuration::MAX);
    let options = CheckOptions {
        expected: args.expect,
        warn_within,
    };
    let report = check(&evidence, &options, now);
    let output = &mut session.output;
    if !output.data(&report)? {
        show::report(output, &report, now)?;
    }
    if report.has_findings() {
        return Ok(Outcome::Found);
    }
    if report.servers.is_empty() {
        return Err(
            Error::new(Code::Unreachable, "no certificate could be looked at")
                .hint("what was tried is listed above"),
        );
    }
    Ok(Outcome::Done)
}

fn collect_options(args: &Check, look: &Look) -> Result<CollectOptions, Error> {
    let endpoints = look.options.endpoints.iter().map(|text| {
        text.parse::<Endpoint>().map_err(|error| {
            Error::new(
                Code::Invalid,
                format!("the endpoint {text:?} cannot be used"),
            )
            .caused_by(&error)
        })
    });
    let k8s_endpoint = args.k8s_endpoint.as_deref().map(|text| {
        Address::parse(text).map_err(|error| {
            Error::new(Code::Usage, "--k8s-endpoint cannot be used").caused_by(&error)
        })
    });
    let (authorities, identity) = match &look.options.security {
        Security::Mutual(credentials) => (
            credentials.authorities.clone(),
            credentials.identity.as_ref(),
        ),
        Security::Maintenance { .. } => (Vec::new(), None),
    };
    let leaf = identity.and_then(|identity| identity.chain.first());
    Ok(CollectOptions {
        nodes: look.nodes.clone(),
        endpoints: endpoints.collect::<Result<_, _>>()?,
        talos_authorities: authorities,
        talos_client: leaf.map(|leaf| {
            let place = format!("talosconfig context {:?}", look.context);
            (place, leaf.clone())
        }),
        k8s_endpoint: k8s_endpoint.transpose()?,
        kubernetes: kubernetes(args)?,
        kinds: if args.server.is_empty() {
            vec![ServerKind::Apid, ServerKind::KubeApiserver]
        } else {
            args.server.clone()
        },
        concurrency: look.concurrency,
        timeout: look.options.connect_timeout,
        ..CollectOptions::default()
    })
}

fn kubernetes(args: &Check) -> Result<KubernetesAccess, Error> {
    let Some(path) = &args.kubeconfig else {
        return Ok(KubernetesAccess::default());
    };
    let text = files::read(path)?;
    let kubeconfig = Kubeconfig::parse(path.display().to_string(), &text)
        .map_err(|error| Error::of(Code::Invalid, &error))?;
    KubernetesAccess::from_kubeconfig(&kubeconfig).map_err(|error| Error::of(Code::Invalid, &error))
}

/// Reads `NAME` or `KIND=NAME`.
fn expected_name(text: &str) -> Result<ExpectedName, String> {
    let (kind, name) = match text.split_once('=') {
        Some((kind, name)) => (Some(server_kind(kind)?), name),
        None => (None, text),
    };
    let name = Name::parse(name).map_err(|error| error.to_string())?;
    Ok(ExpectedName { kind, name })
}

fn server_kind(text: &str) -> Result<ServerKind, String> {
    [ServerKind::Apid, ServerKind::KubeApiserver]
        .into_iter()
        .find(|kind| kind.as_str() == text)
        .ok_or_else(|| format!("`{text}` is neither apid nor kube-apiserver"))
}

/// Reads a Go duration, or days such as `30d`.
fn period(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days)) => Ok(Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        _ => values::duration(text),
    }
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
        check("etcd=lb.example", None);
        check("https://lb.example", None);
        check("", None);
    }

    #[test]
    fn periods_are_durations_or_days() {
        assert_eq!(period("30d"), Ok(Duration::from_secs(2_592_000)));
        assert_eq!(period("720h"), Ok(Duration::from_secs(2_592_000)));
        assert_eq!(period("0"), Ok(Duration::ZERO));
        assert!(period("d").is_err());
        assert!(period("30").is_err());
    }
}
