//! The plan: which patch each node gets, and what no patch repairs.

use schemars::JsonSchema;
use serde::Serialize;
use talos_config::machine::MachineConfig;
use talos_config::patch::{Patch, apply};
use talos_config::{Schema, mask};
use talos_pki::Name;

use super::FixError;
use crate::report::{Problem, Server};
use crate::{Report, ServerKind, Setting, Source};

/// The configuration of a node that may be changed.
#[derive(Clone, Default)]
pub struct FixConfig {
    /// Node as the user named it.
    pub node: String,
    /// Text of the active configuration.
    pub text: String,
    /// Version of the resource that holds it.
    pub version: String,
    /// Version of Talos, such as `v1.13.9`; empty if it is not known.
    pub talos: String,
    /// Whether another configuration is being tried or staged.
    pub pending: bool,
}

/// Configurations hold keys, so none is shown.
impl std::fmt::Debug for FixConfig {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("FixConfig")
            .field("node", &self.node)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// What would be done to repair what a check found.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixPlan {
    /// Nodes whose configuration changes, in the order in which they are changed.
    pub nodes: Vec<NodeFix>,
    /// What no change of the configuration of these nodes repairs.
    pub not_fixable: Vec<NotFixable>,
}

/// What changes on one node.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeFix {
    /// Node as the user named it.
    pub node: String,
    /// Settings that get more names.
    pub changes: Vec<FixChange>,
    /// Unified difference of the configuration, secrets masked.
    pub diff: String,
    /// Whether the node restarts its control plane pods for it.
    pub restarts: bool,
    /// Whether another configuration is being tried or staged, which has to end first.
    pub pending: bool,
    /// Text of the configuration it gets.
    #[serde(skip)]
    pub(super) text: String,
    /// Version of the configuration that the text was made from.
    #[serde(skip)]
    pub(super) version: String,
}

impl std::fmt::Debug for NodeFix {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("NodeFix")
            .field("node", &self.node)
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}

/// Names that one setting gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixChange {
    /// Setting, such as `machine.certSANs`.
    pub setting: String,
    /// Servers whose certificate it changes and that were found to miss names.
    pub servers: Vec<ServerKind>,
    /// Names and addresses that are added.
    pub names: Vec<String>,
    /// Strategic merge patch in one line.
    pub patch: String,
    /// What the change costs.
    pub cost: String,
    /// Names as they are verified.
    #[serde(skip)]
    pub(super) parsed: Vec<Name>,
    /// Servers that were dialled, so that they can be dialled again.
    #[serde(skip)]
    pub(super) dialled: Vec<ServerKind>,
}

/// A finding that no change of the configuration of the chosen nodes repairs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotFixable {
    /// Node, address or file that it was found at.
    pub place: String,
    /// Kind of server; absent for files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ServerKind>,
    /// Kind of problem.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// What to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// Plans the patches of the nodes whose configuration is given, each in the form that its configuration uses.
///
/// # Errors
/// [`FixError::Patch`] when a configuration is not one, or cannot take the names.
pub fn plan_fix(report: &Report, configs: &[FixConfig]) -> Result<FixPlan, FixError> {
    let mut plan = FixPlan::default();
    for config in configs {
        let servers = report.servers.iter();
        let servers = servers.filter(|server| server.node == config.node);
        if let Some(node) = plan_node(config, servers)? {
            plan.nodes.push(node);
        }
    }
    for server in &report.servers {
        let known = configs.iter().any(|config| config.node == server.node);
        for problem in &server.findings {
            let fixed = problem.fix.is_some() && known;
            // It says of the same name that other nodes have it; the node that misses it is repaired.
            let follows = problem.code == "served-differently"
                && server
                    .findings
                    .iter()
                    .any(|other| known && other.fix.is_some() && other.name == problem.name);
            if !fixed && !follows {
                plan.not_fixable
                    .push(left(&server.node, Some(server.kind), problem, known));
            }
        }
    }
    for client in &report.clients {
        let problems = client.findings.iter();
        plan.not_fixable
            .extend(problems.map(|problem| left(&client.place, None, problem, true)));
    }
    Ok(plan)
}

fn left(place: &str, kind: Option<ServerKind>, problem: &Problem, known: bool) -> NotFixable {
    let elsewhere = "it belongs to none of the nodes that may be changed: name its node with -n";
    NotFixable {
        place: place.to_owned(),
        kind,
        code: problem.code.clone(),
        message: problem.message.clone(),
        advice: match &problem.advice {
            None if !known => Some(elsewhere.to_owned()),
            advice => advice.clone(),
        },
    }
}

fn plan_node<'a>(
    config: &FixConfig,
    servers: impl Iterator<Item = &'a Server>,
) -> Result<Option<NodeFix>, FixError> {
    let refused = |source: talos_config::Error| FixError::Patch {
        node: config.node.clone(),
        source: Box::new(source),
    };
    let parsed = MachineConfig::parse(&config.text).map_err(refused)?;
    let has_document = parsed.document("KubeAPIServerConfig").is_some();
    let mut changes: Vec<(Setting, FixChange)> = Vec::new();
    for server in servers {
        let Some(setting) = Setting::of(server.kind, has_document) else {
            continue;
        };
        let fixable = server
            .findings
            .iter()
            .filter(|problem| problem.fix.is_some());
        let names: Vec<Name> = fixable
            .filter_map(|problem| Name::parse(problem.name.as_deref()?).ok())
            .collect();
        if names.is_empty() {
            continue;
        }
        let index = changes.iter().position(|(known, _)| *known == setting);
        let index = index.unwrap_or_else(|| {
            changes.push((setting, FixChange::of(setting)));
            changes.len() - 1
        });
        changes[index].1.add(server, names);
    }
    if changes.is_empty() {
        return Ok(None);
    }
    let mut patches = Vec::with_capacity(changes.len());
    for (setting, change) in &mut changes {
        change.patch = setting.patch(&change.parsed.iter().collect::<Vec<_>>());
        patches.push(Patch::parse(&change.patch).map_err(refused)?);
    }
    let schema = Schema::for_talos(&config.talos);
    let patched = apply(&config.text, &patches, schema).map_err(refused)?;
    Ok(Some(NodeFix {
        node: config.node.clone(),
        restarts: changes
            .iter()
            .any(|(setting, _)| *setting != Setting::MachineCertSans),
        changes: changes.into_iter().map(|(_, change)| change).collect(),
        diff: mask::diff(&config.text, &patched.text, "active", "new"),
        pending: config.pending,
        text: patched.text,
        version: config.version.clone(),
    }))
}

impl FixChange {
    fn of(setting: Setting) -> Self {
        Self {
            setting: setting.as_str().to_owned(),
            servers: Vec::new(),
            names: Vec::new(),
            patch: String::new(),
            cost: setting.cost().to_owned(),
            parsed: Vec::new(),
            dialled: Vec::new(),
        }
    }

    /// Tells whether every server of it was dialled.
    pub(super) fn is_dialled(&self) -> bool {
        self.servers.iter().all(|kind| self.dialled.contains(kind))
    }

    fn add(&mut self, server: &Server, names: Vec<Name>) {
        self.servers.push(server.kind);
        if server.source == Source::Served {
            self.dialled.push(server.kind);
        }
        for name in names {
            if !self.parsed.contains(&name) {
                self.names.push(name.to_string());
                self.parsed.push(name);
            }
        }
    }
}
