//! `ichor version`: this program, and what nodes run.

use serde::Serialize;

use talos_client::NodeVersion;

use crate::error::{Error, Outcome};
use crate::output::{Format, Output, OutputArgs};
use crate::report::{self, Entry, NodeResult};
use crate::session::Session;

/// Print the version of this program and of nodes
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print only the version of this program
    #[arg(long)]
    client: bool,
    /// Ask nodes in maintenance mode: no client certificate, and the server is not verified
    #[arg(short, long)]
    insecure: bool,
    /// Print only version numbers
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// What `--version` prints after the program's name.
pub(crate) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("ICHOR_REVISION"),
    ")\nTalos 1.11 to 1.14, Kubernetes 1.29 to 1.37"
);

/// What `ichor version` prints.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Document<'a> {
    /// This program.
    client: Client,
    /// What each node runs; absent with `--client`.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<Entry<'a, Server>>>,
}

/// What a node runs.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Server {
    /// The version of Talos, such as `v1.13.9`.
    tag: String,
    /// The commit it was built from.
    sha: String,
    /// When it was built; often empty.
    built: String,
    /// The version of Go it was built with.
    go_version: String,
    /// The operating system it was built for.
    os: String,
    /// The processor architecture.
    arch: String,
    /// The platform it runs on, such as `metal` or `aws`.
    platform: Option<String>,
    /// The kind of platform: `metal`, `cloud`, `container` or `metal-agent`.
    mode: Option<String>,
    /// Whether roles limit what callers may do; null in maintenance mode.
    rbac: Option<bool>,
}

/// This program.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Client {
    /// The program's version.
    version: &'static str,
    /// The git revision it was built from.
    revision: &'static str,
    /// The platform it was built for.
    target: &'static str,
    /// What it is made to work with.
    supported: Supported,
}

/// Versions that the program is made to work with.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Supported {
    /// Talos on the nodes.
    talos: Range,
    /// Kubernetes on the cluster.
    kubernetes: Range,
}

/// Minor versions from the oldest to the newest.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Range {
    /// The oldest minor version.
    min: &'static str,
    /// The newest minor version.
    max: &'static str,
}

const CLIENT: Client = Client {
    version: env!("CARGO_PKG_VERSION"),
    revision: env!("ICHOR_REVISION"),
    target: env!("ICHOR_TARGET"),
    supported: Supported {
        talos: Range {
            min: "1.11",
            max: "1.14",
        },
        kubernetes: Range {
            min: "1.29",
            max: "1.37",
        },
    },
};

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let people = !matches!(
        session.output.format(),
        Format::Json | Format::Ndjson | Format::Yaml
    );
    if people {
        show_client(&mut session.output, args.short)?;
    }
    if args.client {
        return document(&mut session.output, None);
    }
    if people {
        // A node that does not answer keeps nobody from reading this.
        session.output.flush()?;
    }
    let target = if args.insecure {
        session.maintenance(&[])?
    } else {
        session.reading()?
    };
    let results = session.runtime()?.run(async {
        Ok(target
            .each(async |node| Ok(Server::from(node.version().await?)))
            .await)
    })?;
    if people {
        show_servers(&mut session.output, &results, args.short)
    } else {
        document(&mut session.output, Some(&results))
    }
}

fn document(output: &mut Output, results: Option<&[NodeResult<Server>]>) -> Result<Outcome, Error> {
    let nodes = results.map(|results| results.iter().map(report::entry).collect());
    output.data(&Document {
        client: CLIENT,
        nodes,
    })?;
    Ok(results.map_or(Outcome::Done, report::outcome))
}

fn show_client(output: &mut Output, short: bool) -> Result<(), Error> {
    if short {
        return output.line(&format!("Client v{}", CLIENT.version));
    }
    let Supported { talos, kubernetes } = CLIENT.supported;
    output.line("Client:")?;
    output.line(&format!("\tTag:         v{}", CLIENT.version))?;
    output.line(&format!("\tSHA:         {}", CLIENT.revision))?;
    output.line(&format!("\tTarget:      {}", CLIENT.target))?;
    output.line(&format!("\tTalos:       {} to {}", talos.min, talos.max))?;
    output.line(&format!(
        "\tKubernetes:  {} to {}",
        kubernetes.min, kubernetes.max
    ))
}

fn show_servers(
    output: &mut Output,
    results: &[NodeResult<Server>],
    short: bool,
) -> Result<Outcome, Error> {
    report::report(output, results, |output, answered| {
        output.line("Server:")?;
        for (node, server) in answered {
            output.line(&format!("\tNODE:        {node}"))?;
            output.line(&format!("\tTag:         {}", server.tag))?;
            if short {
                continue;
            }
            output.line(&format!("\tSHA:         {}", server.sha))?;
            output.line(&format!("\tBuilt:       {}", server.built))?;
            output.line(&format!("\tGo version:  {}", server.go_version))?;
            output.line(&format!("\tOS/Arch:     {}/{}", server.os, server.arch))?;
            if let (Some(platform), Some(mode)) = (&server.platform, &server.mode) {
                output.line(&format!("\tPlatform:    {platform} ({mode})"))?;
            }
            if server.rbac == Some(true) {
                output.line("\tEnabled:     RBAC")?;
            }
        }
        Ok(())
    })
}

impl From<NodeVersion> for Server {
    fn from(version: NodeVersion) -> Self {
        let (platform, mode) = version
            .platform
            .map(|platform| (platform.name, platform.mode))
            .unzip();
        Self {
            tag: version.tag,
            sha: version.sha,
            built: version.built,
            go_version: version.go_version,
            os: version.os,
            arch: version.arch,
            platform,
            mode,
            rbac: version.rbac,
        }
    }
}
