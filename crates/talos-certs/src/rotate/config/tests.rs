use jiff::Timestamp;
use talos_pki::AuthorityKind;

use super::*;

fn authority(kind: AuthorityKind) -> Authority {
    let now: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
    Authority::generate(kind, now).unwrap()
}

/// Carries a configuration through all rounds and returns the text after each.
fn rounds(
    text: &str,
    rotated: Rotated,
    is_control_plane: bool,
    old: &Authority,
    new: &Authority,
) -> [String; 3] {
    let old = old.certificate();
    let stages = |text: &str| {
        let held = read(text, rotated).unwrap();
        held.stage(old, Some(new.certificate())).unwrap()
    };
    let next = |text: &str, change| write(text, rotated, is_control_plane, change).unwrap();
    assert_eq!(stages(text), Stage::Old);
    let first = next(text, Change::Accept(new.certificate()));
    assert!(stages(&first) >= Stage::Accepts);
    let second = next(&first, Change::Issue { new, old });
    assert_eq!(stages(&second), Stage::Issues);
    let third = next(&second, Change::Drop(old));
    assert_eq!(stages(&third), Stage::Dropped);
    // Each round done twice changes nothing.
    assert_eq!(next(&first, Change::Accept(new.certificate())), first);
    assert_eq!(next(&second, Change::Accept(new.certificate())), second);
    assert_eq!(next(&third, Change::Accept(new.certificate())), third);
    assert_eq!(next(&second, Change::Issue { new, old }), second);
    assert_eq!(next(&third, Change::Issue { new, old }), third);
    assert_eq!(next(&third, Change::Drop(old)), third);
    [first, second, third]
}

fn base64(text: impl AsRef<[u8]>) -> String {
    STANDARD.encode(text)
}

#[test]
fn only_the_authorities_of_a_control_plane_change() {
    let (old, new) = (
        authority(AuthorityKind::Talos),
        authority(AuthorityKind::Talos),
    );
    let (old_crt, new_crt) = (
        base64(old.certificate().pem()),
        base64(new.certificate().pem()),
    );
    let (old_key, new_key) = (
        base64(old.key().pem().as_bytes()),
        base64(new.key().pem().as_bytes()),
    );
    let text = format!(
        "version: v1alpha1 # first\nmachine:\n    type: controlplane\n    ca:\n        crt: {old_crt} # mine\n        key: {old_key}\n    certSANs: [a]\ncluster: {{}}\n"
    );
    let [first, second, third] = rounds(&text, Rotated::Talos, true, &old, &new);
    for line in [
        "version: v1alpha1 # first",
        "    certSANs: [a]",
        "cluster: {}",
    ] {
        assert!(
            [&first, &second, &third]
                .iter()
                .all(|text| text.contains(line))
        );
    }
    assert!(first.contains(&old_key) && !first.contains(&new_key));
    assert!(second.contains(&old_crt) && second.contains(&new_key));
    assert!(!second.contains(&old_key), "the old key is gone");
    let expected = text.replace(&old_crt, &new_crt).replace(&old_key, &new_key);
    assert_eq!(third, expected);
}

#[test]
fn a_worker_gets_no_key_and_keeps_what_else_it_accepts() {
    let (old, new, other) = (
        authority(AuthorityKind::Kubernetes),
        authority(AuthorityKind::Kubernetes),
        authority(AuthorityKind::Kubernetes),
    );
    let crt = |authority: &Authority| base64(authority.certificate().pem());
    let text = format!(
        "machine: {{type: worker}}\ncluster:\n    ca:\n        crt: {}\n        key: \"\"\n    acceptedCAs:\n        - crt: {} # a friend\n",
        crt(&old),
        crt(&other)
    );
    let [_, second, third] = rounds(&text, Rotated::Kubernetes, false, &old, &new);
    assert!(second.contains("key: \"\"\n"));
    assert_eq!(third, text.replace(&crt(&old), &crt(&new)));
}

#[test]
fn a_document_of_its_own_is_changed_where_there_is_one() {
    let (old, new) = (
        authority(AuthorityKind::Kubernetes),
        authority(AuthorityKind::Kubernetes),
    );
    let indented = |pem: &str| pem.trim_end().replace('\n', "\n        ");
    let (pem, key) = (old.certificate().pem(), old.key().pem());
    let main = "machine: {type: controlplane}\ncluster: {token: a.b}\n---\napiVersion: v1alpha1\nkind: KubeAPIServerCAConfig\n";
    let text = format!(
        "{main}issuingCA:\n    cert: |-\n        {}\n    key: |-\n        {}\n",
        indented(&pem),
        indented(&key)
    );
    let [_, _, third] = rounds(&text, Rotated::Kubernetes, true, &old, &new);
    assert!(third.starts_with(main));
    assert_eq!(
        accepted_setting(&text, Rotated::Kubernetes).unwrap(),
        "KubeAPIServerCAConfig: acceptedCAs"
    );
    // Workers accept only.
    let text = format!("{main}acceptedCAs:\n    - |-\n        {}\n", indented(&pem));
    let [first, second, _] = rounds(&text, Rotated::Kubernetes, false, &old, &new);
    assert_eq!(first, second);
}

#[test]
fn what_is_damaged_is_named() {
    let check = |text: &str, expected: &str| {
        let problem = read(text, Rotated::Talos).unwrap_err();
        assert_eq!(problem.to_string(), expected);
    };
    check("machine: {ca: {crt: '%'}}", "machine.ca.crt is not base64");
    check(
        "machine: {ca: {crt: YQ==}}",
        "machine.ca.crt cannot be read",
    );
    check(
        "machine: {acceptedCAs: [{crt: [a]}]}",
        "machine.acceptedCAs is not a text",
    );
    check("machine: [", "the machine configuration cannot be read");
}

#[test]
fn an_empty_list_that_was_there_stays() {
    let old = authority(AuthorityKind::Talos);
    let text = format!(
        "version: v1alpha1\nmachine:\n    type: worker\n    ca:\n        crt: {}\n    acceptedCAs: []\n",
        base64(old.certificate().pem())
    );
    let change = Change::Drop(old.certificate());
    assert_eq!(write(&text, Rotated::Talos, false, change).unwrap(), text);
}
