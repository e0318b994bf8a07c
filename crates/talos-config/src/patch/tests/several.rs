//! What is told of several patches.

use super::*;

const BOTH: &str = "machine: {type: worker}
---
apiVersion: v1alpha1
kind: VLANConfig
name: a
vlanID: 5
";

/// Returns what is said of each patch that is at fault.
fn told(patches: &[&str], options: &Options) -> Vec<String> {
    let patches: Vec<Patch> = patches.iter().map(|text| Patch::unread(*text)).collect();
    let problems = match apply_with(BOTH, &patches, options).unwrap_err() {
        Error::Problems { problems } => problems,
        problem => vec![problem],
    };
    let chain = |error: &Error| match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    problems.iter().map(chain).collect()
}

#[test]
fn every_patch_that_is_at_fault_is_told() {
    let options = Options::from(Schema::for_talos("1.13"));
    for (patches, want) in [
        (
            // Each is wrong whatever the others do.
            vec![
                "machine: {bogus: 1}",
                "machine: {type: init}",
                "nonsense: [",
                "machine: {typo: 1, certSANs: a}",
                "- {op: drop, path: /a}",
            ],
            vec![
                "patch 1: line 1: machine.bogus: no such field in Talos 1.13.9",
                "patch 3: not valid YAML at line 1, column 11: ",
                "patch 4: 2 problems\n  line 1: machine.typo: no such field in Talos 1.13.9\n  line 1: machine.certSANs: expected a list, found a string",
                "patch 5: line 1: operation 1 of the JSON Patch: unknown `op` `drop` for `/a`",
                "not judged, since they change what a failed one was to change: patch 2",
            ],
        ),
        (
            // A document that no failed patch was to change is changed on.
            vec![
                "machine: {sysctls: {a: {$patch: delete}}}",
                "apiVersion: v1alpha1\nkind: VLANConfig\nname: a\nmtu: 1400",
                "apiVersion: v1alpha1\nkind: VLANConfig\nname: b\n$patch: delete",
                "machine: {sysctls: {b: {$patch: delete}}}",
                "- {op: remove, path: /machine/nope}",
            ],
            vec![
                "patch 1: line 1: machine.sysctls.a: nothing to delete",
                "patch 3: line 1: document VLANConfig/b: nothing to delete, the configuration has no such document",
                "not judged, since they change what a failed one was to change: patches 4, 5",
            ],
        ),
    ] {
        let told = told(&patches, &options);
        assert_eq!(told.len(), want.len(), "{told:#?}");
        for (told, want) in told.iter().zip(want) {
            assert!(told.starts_with(want), "{told} for {want}");
        }
    }
}

#[test]
fn a_json_patch_after_a_failed_one_is_judged_by_its_document() {
    let options = Options {
        document: Some("VLANConfig/a".to_owned()),
        ..Options::from(Schema::for_talos("1.13"))
    };
    assert_eq!(
        told(
            &[
                "machine: {bogus: 1}",
                "- {op: remove, path: /nope}",
                "- {op: remove, path: /mtu}",
            ],
            &options,
        ),
        [
            "patch 1: line 1: machine.bogus: no such field in Talos 1.13.9",
            "patch 2: line 1: operation 1 of the JSON Patch: `remove` finds nothing at `/nope` of VLANConfig/a",
            "not judged, since they change what a failed one was to change: patch 3",
        ]
    );
}

#[test]
fn a_warning_names_its_patch_if_there_are_several() {
    let patches = [
        "machine: {type: init}",
        "machine: {network: {$patch: delete}}",
    ];
    let warnings = patched(BOTH, &patches, "1.13").unwrap().warnings;
    assert_eq!(
        warnings,
        ["patch 2: line 1: machine.network: nothing to delete"]
    );
    let warnings = patched(BOTH, &patches[1..], "1.13").unwrap().warnings;
    assert_eq!(warnings, ["line 1: machine.network: nothing to delete"]);
}

#[test]
fn a_patch_may_have_what_the_newer_of_both_versions_has() {
    let config = "machine: {install: {image: 'ghcr.io/siderolabs/installer:v1.11.5'}}\n";
    let newer = "apiVersion: v1alpha1\nkind: KubeletConfig\nimage: a";
    let upgrade = "machine: {install: {image: 'ghcr.io/siderolabs/installer:v1.14.1'}}";
    let upgrade_as_json = r#"[{"op":"replace","path":"/machine/install","value":{"image":"ghcr.io/siderolabs/installer:v1.14.1"}}]"#;
    let applied = |patches: &[&str]| {
        let patches: Vec<Patch> = patches.iter().map(|text| Patch::unread(*text)).collect();
        apply_with(config, &patches, &Options::default())
    };
    let error = applied(&[newer]).unwrap_err();
    let source = error.source().unwrap().to_string();
    assert!(source.contains("Talos 1.14.1 has it"), "{source}");
    for upgrade in [upgrade, upgrade_as_json] {
        let made = applied(&[upgrade, newer]).unwrap();
        assert!(made.text.ends_with("image: a\n"));
    }
}
