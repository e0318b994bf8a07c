//! Carrying a plan out: one node after the other, each verified before the next one.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use talos_client::{ApplyMode, ApplyRequest, Client, MachineConfig};
use talos_config::machine::is_same;
use talos_pki::{Certificate, Name, covers};
use tokio::time::Instant;

use super::pods::Pods;
use super::{FixChange, FixError, FixPlan, NodeFix};
use crate::{
    CollectOptions, Evidence, Handshake, ProbeOptions, Seen, ServerKind, Source, Stop, collect,
    verified_handshake,
};

/// A label that a wildcard stands for.
const WILDCARD_LABEL: &str = "any";

/// How nodes and their servers are reached.
#[derive(Clone, Copy, Debug)]
pub struct FixAccess<'a> {
    /// Client of the Talos API.
    pub client: &'a Client,
    /// How the servers were looked at when the plan was made.
    pub collecting: &'a CollectOptions,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct FixTiming {
    /// Pause between two looks at a server.
    pub poll: Duration,
    /// Time for which kube-apiserver must answer, unless it was seen to restart: the restart comes some seconds after
    /// the new certificate. It is four times as long where kube-apiserver cannot be dialled from here.
    pub settle: Duration,
    /// Time after which a node counts as failed.
    pub limit: Duration,
}

impl Default for FixTiming {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(1),
            settle: Duration::from_secs(30),
            limit: Duration::from_secs(5 * 60),
        }
    }
}

/// How a plan is carried out.
pub struct FixOptions<'a> {
    /// How long things may take.
    pub timing: FixTiming,
    /// Looked at before each node.
    pub stop: Stop,
    /// The clock that certificates are judged by.
    pub now: &'a (dyn Fn() -> Timestamp + Sync),
    /// Told what happens.
    pub observer: &'a (dyn Fn(&FixEvent) + Sync),
}

/// Something that happens while a plan is carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixEvent {
    /// The node.
    pub node: String,
    /// What happens.
    pub message: String,
}

/// What became of a plan.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixReport {
    /// Each node of the plan.
    pub nodes: Vec<FixedNode>,
}

/// What became of one node.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixedNode {
    /// Node as the user named it.
    pub node: String,
    /// How far it came.
    pub state: FixState,
    /// Whether it took the configuration.
    pub applied: bool,
    /// Names that were verified.
    pub verified: Vec<VerifiedName>,
    /// What went wrong, with every cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How far a node came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FixState {
    /// Every name is served and verified.
    Done,
    /// Something went wrong.
    Failed,
    /// The run ended before its turn.
    NotStarted,
}

/// A name that was verified after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedName {
    /// Kind of server.
    pub kind: ServerKind,
    /// Name or address.
    pub name: String,
    /// Address at which the handshake was made; absent where the certificate was read from the node, which cannot be
    /// dialled from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// Carries a plan out, one node after the other; the first node that fails is the last one.
pub async fn fix(plan: &FixPlan, access: FixAccess<'_>, options: &FixOptions<'_>) -> FixReport {
    let mut report = FixReport::default();
    let mut ended = false;
    for node in &plan.nodes {
        let mut fixed = FixedNode {
            node: node.node.clone(),
            state: FixState::NotStarted,
            applied: false,
            verified: Vec::new(),
            error: None,
        };
        if !ended && !options.stop.is_requested() {
            fixed.state = FixState::Done;
            if let Err(error) = fix_node(node, access, options, &mut fixed).await {
                fixed.error = Some(in_words(&error));
                fixed.state = FixState::Failed;
                ended = true;
            }
        }
        report.nodes.push(fixed);
    }
    report
}

/// Joins an error, its causes, and what a node found wrong with the configuration.
fn in_words(error: &FixError) -> String {
    let mut text = crate::error::sentence(error);
    if let FixError::Call { source, .. } = error
        && let talos_client::Error::Invalid { problems, .. } = source.as_ref()
    {
        text.push_str(": ");
        text.push_str(&problems.join("; "));
    }
    text
}

async fn fix_node(
    plan: &NodeFix,
    access: FixAccess<'_>,
    options: &FixOptions<'_>,
    fixed: &mut FixedNode,
) -> Result<(), FixError> {
    let tell = |message: String| {
        (options.observer)(&FixEvent {
            node: plan.node.clone(),
            message,
        });
    };
    let node = access.client.node(plan.node.as_str());
    still_the_same(plan, &node).await?;
    let before = match plan.restarts {
        true => Pods::of(&node).await,
        false => None,
    };
    tell("applying the configuration without a reboot".to_owned());
    let request = ApplyRequest {
        config: plan.text.clone(),
        mode: ApplyMode::NoReboot,
        dry_run: false,
        try_timeout: None,
    };
    let applied = node.apply_configuration(request).await;
    applied.map_err(|source| FixError::Call {
        what: "the configuration was not applied",
        source: Box::new(source),
    })?;
    fixed.applied = true;
    tell("waiting until the names are served".to_owned());
    let evidence = wait(plan, access, options, before.as_ref(), &tell).await?;
    for change in &plan.changes {
        for seen in servers(&evidence, plan, &change.servers) {
            for name in &change.parsed {
                let address = verify(seen, name, &evidence, access, (options.now)()).await?;
                fixed.verified.push(VerifiedName {
                    kind: seen.kind,
                    name: name.to_string(),
                    address,
                });
            }
        }
    }
    tell("every name is served and verified".to_owned());
    Ok(())
}

/// Refuses to replace what somebody else changed since the plan was made, or what is on trial.
async fn still_the_same(plan: &NodeFix, node: &talos_client::Node) -> Result<(), FixError> {
    let configs = node.machine_configs().await;
    let configs = configs.map_err(|source| FixError::Call {
        what: "the configuration cannot be read",
        source: Box::new(source),
    })?;
    let of = |id: &str| configs.iter().find(|config| config.id == id);
    let active = of(MachineConfig::ACTIVE);
    let now = active
        .map(|config| config.version.clone())
        .unwrap_or_default();
    if now != plan.version {
        let read = plan.version.clone();
        return Err(FixError::Changed { read, now });
    }
    match (active, of(MachineConfig::PERSISTENT)) {
        (Some(active), Some(next)) if !is_same(&active.text, &next.text).unwrap_or(false) => {
            Err(FixError::Pending)
        }
        _ => Ok(()),
    }
}

/// Returns the node's servers of these kinds.
fn servers<'a>(
    evidence: &'a Evidence,
    plan: &'a NodeFix,
    kinds: &'a [ServerKind],
) -> impl Iterator<Item = &'a Seen> {
    let seen = evidence.servers.iter();
    seen.filter(|seen| seen.node == plan.node && kinds.contains(&seen.kind))
}

/// Waits until every server presents the names, and until a restart of kube-apiserver is over.
async fn wait(
    plan: &NodeFix,
    access: FixAccess<'_>,
    options: &FixOptions<'_>,
    before: Option<&Pods>,
    tell: &impl Fn(String),
) -> Result<Evidence, FixError> {
    /// Looks in a row that must succeed after a restart was seen.
    const IN_A_ROW: u32 = 3;
    /// How many times as long a restart is waited for that cannot be seen: on a real node it is over 98 seconds after the
    /// names are served.
    const UNSEEN: u32 = 4;
    let FixTiming {
        poll,
        settle,
        limit,
    } = options.timing;
    let mut collecting = access.collecting.clone();
    collecting.nodes = vec![plan.node.clone()];
    collecting.servers.clear();
    collecting.resources = false;
    let kinds = plan
        .changes
        .iter()
        .flat_map(|change| change.servers.clone());
    collecting.kinds = kinds.collect();
    // From afar only what the node holds can be seen, and nothing of a restart.
    let mut restarting = plan
        .changes
        .iter()
        .filter(|change| change.servers.contains(&ServerKind::KubeApiserver));
    let settle = match restarting.all(FixChange::is_dialled) {
        true => settle,
        false => settle * UNSEEN,
    };
    let node = access.client.node(plan.node.as_str());
    let started = Instant::now();
    let (mut served, mut up, mut in_a_row, mut restarted) = (false, started, 0, false);
    loop {
        let evidence = collect(Ok(access.client), &collecting).await;
        let mut missing = missing(plan, &evidence);
        let mut is_over = false;
        // What was not ready before the change may have reasons of its own.
        if let Some(before) = before.filter(|before| before.unready().is_none()) {
            // A node that told before and does not now is in the middle of it.
            let now = Pods::of(&node).await;
            let unready = match &now {
                Some(now) => now
                    .unready()
                    .map(|pod| format!("{pod} is not ready, says the node")),
                None => Some("the node does not tell of its pods".to_owned()),
            };
            missing = missing.or(unready);
            is_over = now.is_some_and(|now| now.were_started_since(before));
        }
        match missing {
            None => {
                if in_a_row == 0 {
                    up = Instant::now();
                }
                in_a_row += 1;
                if !served && plan.restarts {
                    tell(
                        "the names are served; waiting for the restart of the control plane pods"
                            .to_owned(),
                    );
                }
                served = true;
                let answers = in_a_row >= IN_A_ROW && (restarted || is_over);
                let settled = up.elapsed() >= settle || answers;
                if !plan.restarts || settled {
                    return Ok(evidence);
                }
            }
            Some(why) => {
                if served && !restarted {
                    tell(format!("restarting: {why}"));
                }
                restarted |= served;
                in_a_row = 0;
                let waited = started.elapsed();
                if waited >= limit {
                    return Err(FixError::NotServed { waited, why });
                }
            }
        }
        tokio::time::sleep(poll).await;
    }
}

/// Says what is not there yet.
fn missing(plan: &NodeFix, evidence: &Evidence) -> Option<String> {
    for change in &plan.changes {
        for kind in &change.servers {
            let word = kind.as_str();
            let kinds = [*kind];
            let Some(seen) = servers(evidence, plan, &kinds).next() else {
                return Some(format!("{word} does not answer"));
            };
            if change.dialled.contains(kind) && seen.source != Source::Served {
                return Some(format!("{word} does not answer"));
            }
            let leaf = seen.chain.first();
            let uncovered = |name: &&Name| !leaf.is_some_and(|leaf| covers(leaf, name));
            if let Some(name) = change.parsed.iter().find(uncovered) {
                return Some(format!("the certificate of {word} does not cover {name}"));
            }
        }
    }
    None
}

/// Verifies a name by a handshake; what cannot be dialled was judged by the certificate that the node holds.
async fn verify(
    seen: &Seen,
    name: &Name,
    evidence: &Evidence,
    access: FixAccess<'_>,
    now: Timestamp,
) -> Result<Option<String>, FixError> {
    let Some(address) = seen.address.clone() else {
        return Ok(None);
    };
    let failed = |why: String| FixError::NotVerified {
        kind: seen.kind.as_str(),
        address: address.clone(),
        name: name.to_string(),
        why,
    };
    let authorities: &[Certificate] = evidence.authorities(seen.kind);
    if authorities.is_empty() {
        return Err(failed(
            "no authority is known that should have issued it".to_owned(),
        ));
    }
    // A wildcard is tried with one of the names that it stands for.
    let tried = match name {
        Name::Dns(text) if text.starts_with("*.") => text.replacen('*', WILDCARD_LABEL, 1).parse(),
        other => Ok(other.clone()),
    };
    let tried: Name = tried.map_err(|error: talos_pki::Error| failed(error.to_string()))?;
    let limit = access.collecting.timeout;
    let found = tokio::time::timeout(limit, tokio::net::lookup_host(&address)).await;
    let found = found.map_err(|_| failed("the name was not resolved in time".to_owned()))?;
    let found = found.map_err(|error| failed(error.to_string()))?;
    let probing = ProbeOptions {
        timeout: access.collecting.timeout,
        http2: seen.kind == ServerKind::Apid,
        ..ProbeOptions::default()
    };
    let mut why = "the name has no address".to_owned();
    for socket in found {
        let handshake = verified_handshake(socket, &tried, authorities, now, &probing).await;
        why = match handshake {
            Ok(handshake) if handshake.is_verified() => return Ok(Some(address.clone())),
            Ok(Handshake {
                rejection: Some(rejection),
                ..
            }) => rejection.to_string(),
            Ok(_) => "no certificate was presented".to_owned(),
            Err(error) => crate::error::sentence(&error),
        };
    }
    Err(failed(why))
}
