//! Whether a node is still where this rotation left it: two rotations at a time would cut each other off.

use talos_pki::Certificate;

use super::broken;
use crate::rotate::config;
use crate::rotate::{RotateError, RotateNode, Rotation, Round};

/// Looks at what a node has right before a round changes it.
///
/// # Errors
/// [`RotateError::Disturbed`] when an authority issues that is neither the old nor the new one, when one is accepted that
/// was not when the rotation began, or when what the round before did is gone.
pub(super) fn undisturbed(
    active: &str,
    node: &RotateNode,
    rotation: &Rotation,
    round: Round,
) -> Result<(), RotateError> {
    let read =
        |text: &str| config::read(text, rotation.authority).map_err(|source| broken(node, source));
    let (now, before) = (read(active)?, read(&node.config)?);
    let (old, new) = (&rotation.old, rotation.new.certificate());
    let disturbed = |what: String| {
        Err(RotateError::Disturbed {
            node: node.name.clone(),
            what,
        })
    };
    let is_ours = |one: &Certificate| one == old || one == new;
    if let Some(issuing) = now.issuing.iter().find(|one| !is_ours(one)) {
        return disturbed(format!(
            "another authority issues there, {}",
            named(issuing)
        ));
    }
    let mut accepted = now.accepted.iter();
    if let Some(other) = accepted.find(|one| !is_ours(one) && !before.accepted.contains(one)) {
        return disturbed(format!(
            "an authority is accepted there that was not when this rotation began, {}",
            named(other)
        ));
    }
    let issues = |one: &Certificate| now.issuing.as_ref() == Some(one);
    let knows_new = issues(new) || now.accepted.contains(new);
    match round {
        Round::AcceptNew => Ok(()),
        Round::IssueNew if knows_new => Ok(()),
        Round::DropOld if knows_new && !issues(old) => Ok(()),
        Round::IssueNew | Round::DropOld => {
            disturbed("the new authority, which an earlier round put there, is gone".to_owned())
        }
    }
}

/// Tells an authority from others of the same subject.
fn named(certificate: &Certificate) -> String {
    let fingerprint = certificate.fingerprint();
    format!("SHA-256 {}", fingerprint.get(..16).unwrap_or(&fingerprint))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use jiff::Timestamp;
    use talos_pki::{Authority, AuthorityKind};

    use super::*;
    use crate::rotate::Rotated;

    fn authority() -> Authority {
        let now: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
        Authority::generate(AuthorityKind::Talos, now).unwrap()
    }

    fn config(issuing: &Authority, accepted: &[&Authority]) -> String {
        let crt = |one: &Authority| STANDARD.encode(one.certificate().pem());
        let accepted = accepted
            .iter()
            .map(|one| format!("    - crt: {}\n", crt(one)));
        let accepted: String = accepted.collect();
        let list = if accepted.is_empty() { " []" } else { "" };
        format!(
            "version: v1alpha1\nmachine:\n  type: worker\n  ca:\n    crt: {}\n  acceptedCAs:{list}\n{accepted}",
            crt(issuing),
        )
    }

    #[test]
    fn a_second_rotation_is_seen_before_anything_is_changed() {
        let (old, new, other) = (authority(), authority(), authority());
        let rotation = Rotation {
            authority: Rotated::Talos,
            old: old.certificate().clone(),
            new: Authority::new(new.certificate().clone(), new.key().clone()).unwrap(),
            round: Round::AcceptNew,
            finished: false,
        };
        let node = RotateNode {
            name: "10.5.0.2".to_owned(),
            is_control_plane: false,
            config: config(&old, &[]),
            pending: false,
        };
        let check = |active: &str, round, fine: bool| {
            let seen = undisturbed(active, &node, &rotation, round);
            assert_eq!(seen.is_ok(), fine, "{round:?} {seen:?}\n{active}");
        };
        check(&config(&old, &[]), Round::AcceptNew, true);
        check(&config(&old, &[&new]), Round::IssueNew, true);
        check(&config(&new, &[&old]), Round::DropOld, true);
        check(&config(&old, &[&other]), Round::AcceptNew, false);
        check(&config(&other, &[&new]), Round::AcceptNew, false);
        check(&config(&old, &[&new, &other]), Round::IssueNew, false);
        check(&config(&old, &[]), Round::IssueNew, false);
        check(&config(&old, &[&new]), Round::DropOld, false);
    }
}
