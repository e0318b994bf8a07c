//! What has to be done to rotate an authority: a pure function of what nodes have.

use schemars::JsonSchema;
use serde::Serialize;
use talos_pki::Certificate;

use super::config::{self, Stage};
use super::journal::Rotation;
use super::{RotateError, RotateFacts, RotateNode, Rotated};

/// The rounds of a rotation; the next one begins when every node was verified in the one before.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Round {
    /// Every node accepts the new authority.
    AcceptNew,
    /// Every node issues by the new authority and accepts the old one.
    IssueNew,
    /// Every node forgets the old authority.
    DropOld,
}

impl Round {
    /// All rounds, in order.
    pub const ALL: [Self; 3] = [Self::AcceptNew, Self::IssueNew, Self::DropOld];

    /// Says what a node does in this round.
    pub fn label(self) -> &'static str {
        match self {
            Self::AcceptNew => "accept the new authority",
            Self::IssueNew => "issue by the new authority, accept the old one",
            Self::DropOld => "forget the old authority",
        }
    }

    /// The stage that a node has reached when the round is done there.
    pub(super) fn reached(self) -> Stage {
        match self {
            Self::AcceptNew => Stage::Accepts,
            Self::IssueNew => Stage::Issues,
            Self::DropOld => Stage::Dropped,
        }
    }
}

/// One step of a rotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RotateStep {
    /// Its number, from 1.
    pub number: usize,
    /// The round that it belongs to.
    pub round: Round,
    /// The node that is changed; absent for a step that writes the talosconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What is done.
    pub action: String,
    /// The settings of the machine configuration that change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// Whether it was done already, and is only verified.
    pub done: bool,
}

/// What has to be done to rotate one authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RotatePlan {
    /// Which authority.
    pub authority: Rotated,
    /// SHA-256 of the certificate of the old authority, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_fingerprint: Option<String>,
    /// SHA-256 of the certificate of the new authority; absent as long as there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_fingerprint: Option<String>,
    /// Whether an earlier run is continued.
    pub resumed: bool,
    /// The steps, in order.
    pub steps: Vec<RotateStep>,
    /// What keeps it from being done; nothing is changed then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// What should be known beforehand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Plans the rotation of an authority; `rotation` is what an earlier run left.
///
/// # Errors
/// The configuration of a node cannot be read.
pub fn plan_rotation(
    authority: Rotated,
    facts: &RotateFacts,
    rotation: Option<&Rotation>,
) -> Result<RotatePlan, RotateError> {
    let mut plan = RotatePlan {
        authority,
        old_fingerprint: None,
        new_fingerprint: rotation.map(|rotation| rotation.new.certificate().fingerprint()),
        resumed: rotation.is_some(),
        steps: Vec::new(),
        blocked: Vec::new(),
        warnings: Vec::new(),
    };
    blocked_anyway(facts, &mut plan.blocked);
    let mut held = Vec::new();
    for node in ordered(facts) {
        let read = config::read(&node.config, authority).map_err(|source| RotateError::Config {
            node: node.name.clone(),
            source: Box::new(source),
        })?;
        held.push((node, read));
    }
    let found = held
        .iter()
        .filter(|(node, _)| node.is_control_plane)
        .find_map(|(_, held)| held.issuing.clone());
    let old: Option<Certificate> = rotation.map(|rotation| rotation.old.clone()).or(found);
    let Some(old) = old else {
        let reason = "no control plane node has an issuing authority";
        plan.blocked.push(reason.to_owned());
        return Ok(plan);
    };
    plan.old_fingerprint = Some(old.fingerprint());
    let new = rotation.map(|rotation| rotation.new.certificate());
    let mut stages = Vec::new();
    for (node, held) in &held {
        let stage = held.stage(&old, new);
        if stage.is_none() {
            let which = authority.label();
            plan.blocked.push(format!(
                "{}: it has another {which} than the first control plane node",
                node.name
            ));
        }
        let others = held
            .accepted
            .iter()
            .filter(|one| one.der() != old.der() && new.is_none_or(|new| one.der() != new.der()));
        let others = others.count();
        if others > 0 {
            plan.warnings.push(format!(
                "{}: {others} more accepted authorities stay accepted",
                node.name
            ));
        }
        stages.push((*node, stage.unwrap_or(Stage::Old)));
    }
    steps(&mut plan, &stages, rotation.map(|rotation| rotation.round))?;
    Ok(plan)
}

impl RotatePlan {
    /// Tells whether the plan forbids itself.
    pub fn is_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }
}

/// Control planes first, and otherwise in the given order.
pub(super) fn ordered(facts: &RotateFacts) -> Vec<&RotateNode> {
    let mut nodes: Vec<&RotateNode> = facts.nodes.iter().collect();
    nodes.sort_by_key(|node| !node.is_control_plane);
    nodes
}

fn blocked_anyway(facts: &RotateFacts, blocked: &mut Vec<String>) {
    if !facts.nodes.iter().any(|node| node.is_control_plane) {
        blocked.push("none of the nodes is a control plane node".to_owned());
    }
    for left_out in &facts.left_out {
        blocked.push(format!(
            "{left_out} is a member of the cluster and not among the nodes: it would be cut off"
        ));
    }
    for node in facts.nodes.iter().filter(|node| node.pending) {
        blocked.push(format!(
            "{}: a configuration is being tried or staged",
            node.name
        ));
    }
}

fn steps(
    plan: &mut RotatePlan,
    stages: &[(&RotateNode, Stage)],
    at: Option<Round>,
) -> Result<(), RotateError> {
    let authority = plan.authority;
    for round in Round::ALL {
        for (node, stage) in stages {
            let broken = |source| RotateError::Config {
                node: node.name.clone(),
                source: Box::new(source),
            };
            let accepted = config::accepted_setting(&node.config, authority).map_err(broken)?;
            let settings = match round {
                Round::IssueNew => {
                    let issuing = config::issuing_setting(&node.config, authority);
                    vec![issuing.map_err(broken)?, accepted]
                }
                _ => vec![accepted],
            };
            plan.steps.push(RotateStep {
                number: plan.steps.len() + 1,
                round,
                node: Some(node.name.clone()),
                action: round.label().to_owned(),
                settings,
                done: *stage >= round.reached(),
            });
        }
        if authority == Rotated::Talos {
            let action = match round {
                Round::AcceptNew => "write a talosconfig that trusts both authorities",
                Round::IssueNew => {
                    "write a talosconfig with a client certificate of the new authority"
                }
                Round::DropOld => "write a talosconfig that trusts the new authority only",
            };
            plan.steps.push(RotateStep {
                number: plan.steps.len() + 1,
                round,
                node: None,
                action: action.to_owned(),
                settings: Vec::new(),
                done: at.is_some_and(|at| at > round),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use jiff::Timestamp;
    use talos_pki::{Authority, AuthorityKind};

    use super::*;

    fn authority() -> Authority {
        let now: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
        Authority::generate(AuthorityKind::Talos, now).unwrap()
    }

    fn node(name: &str, machine: &str, issuing: &Authority, accepted: &[&Authority]) -> RotateNode {
        let crt = |one: &Authority| STANDARD.encode(one.certificate().pem());
        let list: String = accepted
            .iter()
            .map(|one| format!("\n    - crt: {}", crt(one)))
            .collect();
        let list = if list.is_empty() { " []" } else { &list };
        RotateNode {
            name: name.to_owned(),
            is_control_plane: machine == "controlplane",
            config: format!(
                "machine:\n  type: {machine}\n  ca: {{crt: {}}}\n  acceptedCAs:{list}\n",
                crt(issuing)
            ),
            pending: false,
        }
    }

    fn planned(nodes: Vec<RotateNode>, rotation: Option<&Rotation>) -> RotatePlan {
        let facts = RotateFacts {
            nodes,
            left_out: Vec::new(),
        };
        plan_rotation(Rotated::Talos, &facts, rotation).unwrap()
    }

    /// One line a step: round, node, and a mark for what is done.
    fn lines(plan: &RotatePlan) -> Vec<String> {
        let line = |step: &RotateStep| {
            let done = if step.done { " done" } else { "" };
            let node = step.node.as_deref().unwrap_or("talosconfig");
            format!("{:?} {node}{done}", step.round)
        };
        plan.steps.iter().map(line).collect()
    }

    #[test]
    fn control_planes_come_first_in_each_round() {
        let old = authority();
        let nodes = vec![
            node("w", "worker", &old, &[]),
            node("c1", "controlplane", &old, &[]),
            node("c2", "controlplane", &old, &[]),
        ];
        let plan = planned(nodes, None);
        assert!(!plan.is_blocked() && !plan.resumed);
        assert_eq!(
            lines(&plan)[..5],
            [
                "AcceptNew c1",
                "AcceptNew c2",
                "AcceptNew w",
                "AcceptNew talosconfig",
                "IssueNew c1",
            ]
        );
        assert_eq!(plan.steps.len(), 12);
        assert_eq!(
            plan.steps[4].settings,
            ["machine.ca", "machine.acceptedCAs"]
        );
    }

    #[test]
    fn a_plan_shows_how_far_an_earlier_run_came() {
        let (old, new) = (authority(), authority());
        let rotation = Rotation {
            authority: Rotated::Talos,
            old: old.certificate().clone(),
            new: new.clone(),
            round: Round::IssueNew,
            finished: false,
        };
        let nodes = vec![
            node("c", "controlplane", &new, &[&old]),
            node("w", "worker", &old, &[&new]),
        ];
        let plan = planned(nodes, Some(&rotation));
        assert!(plan.resumed && !plan.is_blocked());
        assert_eq!(
            lines(&plan),
            [
                "AcceptNew c done",
                "AcceptNew w done",
                "AcceptNew talosconfig done",
                "IssueNew c done",
                "IssueNew w",
                "IssueNew talosconfig",
                "DropOld c",
                "DropOld w",
                "DropOld talosconfig",
            ]
        );
    }

    #[test]
    fn what_stands_in_the_way_is_told_together() {
        let (old, other) = (authority(), authority());
        let mut pending = node("c", "controlplane", &old, &[]);
        pending.pending = true;
        let facts = RotateFacts {
            nodes: vec![pending, node("w", "worker", &other, &[])],
            left_out: vec!["w-2".to_owned()],
        };
        let plan = plan_rotation(Rotated::Talos, &facts, None).unwrap();
        assert_eq!(
            plan.blocked,
            [
                "w-2 is a member of the cluster and not among the nodes: it would be cut off",
                "c: a configuration is being tried or staged",
                "w: it has another Talos CA than the first control plane node",
            ]
        );
        let plan = planned(vec![node("w", "worker", &old, &[])], None);
        assert!(plan.is_blocked());
    }

    #[test]
    fn what_is_accepted_besides_is_told() {
        let (old, friend) = (authority(), authority());
        let plan = planned(vec![node("c", "controlplane", &old, &[&friend])], None);
        assert_eq!(
            plan.warnings,
            ["c: 1 more accepted authorities stay accepted"]
        );
    }
}
