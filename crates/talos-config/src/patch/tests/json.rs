//! JSON Patches that write what Talos does not decode, or do not say what they change.

use super::{CONFIG, patched, refused};
use crate::Schema;
use crate::patch::{Options, Patch, apply_with};

const SMALL: &str =
    "machine: {type: worker, network: {interfaces: [{old: 1}, {nope: 1}, {mtu: 1}]}}
---
apiVersion: v1alpha1
kind: VLANConfig
name: a
vlanID: 5
";

fn warnings(patches: &[&str]) -> Vec<String> {
    patched(SMALL, patches, "v1.13.9").unwrap().warnings
}

#[test]
fn what_talos_does_not_decode_is_a_warning_if_the_patch_brings_it() {
    assert_eq!(
        warnings(&[r#"[{"op":"add","path":"/machine/nope","value":1},
                {"op":"add","path":"/machine/kubelet","value":{"extraMounts":{},"disableManifestsDirectory":"maybe"}}]"#]),
        [
            "line 1: machine.nope: no such field in Talos 1.13.9; Talos refuses it",
            "line 2: machine.kubelet.extraMounts: expected a list, found a mapping; Talos refuses it",
            "line 2: machine.kubelet.disableManifestsDirectory: is not `true` or `false`; Talos refuses it",
        ]
    );
    // What was there before stays unsaid, also where it moves in its list.
    assert_eq!(
        warnings(
            &[r#"[{"op":"remove","path":"/machine/network/interfaces/0"},
                {"op":"add","path":"/machine/network/interfaces/-","value":{"mtu":1500}}]"#]
        ),
        [""; 0]
    );
    assert_eq!(
        warnings(&[
            r#"[{"op":"move","from":"/machine/network/interfaces/1/nope","path":"/machine/network/nope"}]"#
        ]),
        ["line 1: machine.network.nope: no such field in Talos 1.13.9; Talos refuses it"]
    );
}

#[test]
fn a_document_that_is_chosen_is_looked_at_by_its_own_fields() {
    let patch = Patch::parse(
        r#"[{"op":"replace","path":"/vlanID","value":"x"},{"op":"add","path":"/machine","value":{}}]"#,
    );
    let mut options = Options {
        document: Some("VLANConfig".to_owned()),
        ..Options::from(Schema::for_talos("v1.13.9"))
    };
    let patches = [patch.unwrap()];
    let patched = apply_with(SMALL, &patches, &options).unwrap();
    assert_eq!(
        patched.warnings,
        [
            "line 1: VLANConfig/a: vlanID: is not a whole number; Talos refuses it",
            "line 1: VLANConfig/a: machine: no such field in Talos 1.13.9; Talos refuses it",
        ]
    );
    options.strict = true;
    let error = apply_with(SMALL, &patches, &options).unwrap_err();
    let error = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        error,
        "2 problems\n  line 1: VLANConfig/a: vlanID: is not a whole number\n  line 1: VLANConfig/a: machine: no such field in Talos 1.13.9"
    );
}

#[test]
fn a_document_stays_what_it_is() {
    let named = "operation 1 of the JSON Patch: `apiVersion` and `kind` tell what the document is, and cannot be changed";
    let nothing = "operation 1 of the JSON Patch: the document would be no mapping any more";
    for (patch, want) in [
        (
            r#"[{"op":"add","path":"/kind","value":"VLANConfig"}]"#,
            named,
        ),
        (
            r#"[{"op":"add","path":"/apiVersion","value":"v1alpha1"}]"#,
            named,
        ),
        (
            r#"[{"op":"replace","path":"","value":{"kind":"VLANConfig"}},{"op":"add","path":"/name","value":"b"}]"#,
            named,
        ),
        (r#"[{"op":"replace","path":"","value":[]}]"#, nothing),
        (r#"[{"op":"add","path":"","value":null}]"#, nothing),
        (
            r#"[{"op":"copy","from":"/machine/type","path":""}]"#,
            nothing,
        ),
    ] {
        refused(CONFIG, patch, "v1.13.9", &format!("line 1: {want}"));
    }
    let there_and_back =
        r#"[{"op":"add","path":"/kind","value":"A"},{"op":"remove","path":"/kind"}]"#;
    assert_eq!(
        patched(CONFIG, &[there_and_back], "v1.13.9").unwrap().text,
        CONFIG
    );
}

#[test]
fn a_pointer_with_an_escape_that_is_none_is_refused() {
    for (path, name) in [
        ("/machine/~2x", "path"),
        ("/machine/x~", "path"),
        ("/a~~0", "from"),
    ] {
        let patch = match name {
            "path" => format!(r#"[{{"op":"add","path":"{path}","value":1}}]"#),
            _ => format!(r#"[{{"op":"copy","from":"{path}","path":"/machine/x"}}]"#),
        };
        let error = Patch::parse(&patch).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "line 1: operation 1 of the JSON Patch: `{name}` is no JSON pointer: in `{path}` a `~` is neither `~0`, which stands for `~`, nor `~1`, for `/`"
            )
        );
    }
}

#[test]
fn what_talos_does_not_decode_is_told_with_the_line_of_its_operation() {
    let patch = r#"
- op: add
  path: /machine/network/interfaces/-
  value: {mtu: 1500}
- op: add
  path: /machine/network/interfaces/0
  value: {bogus: 1}
- op: add
  path: /machine/files
  value: [{path: /a}]
- op: add
  path: /machine/files/-
  value:
    path: 5
    typo: 1
- op: replace
  path: /machine/network/interfaces/2/nope
  value: 2
- {op: test, path: /machine/files/0/path, value: /a}
"#;
    assert_eq!(
        warnings(&[patch]),
        [
            "line 5: machine.network.interfaces[0].bogus: no such field in Talos 1.13.9; Talos refuses it",
            "line 11: machine.files[1].typo: no such field in Talos 1.13.9; Talos refuses it",
        ]
    );
}

#[test]
fn a_patch_directive_in_a_json_patch_is_told() {
    let reason = "`$patch` is for strategic merge patches; a JSON Patch has `\"op\": \"remove\"`";
    let patch = r#"[
        {"op":"add","path":"/machine/kubelet","value":{"$patch":"delete","extraConfig":{"a":{"$patch":"delete"}}}},
        {"op":"add","path":"/machine/sysctls","value":{"$patch":"delete","vm.x":"1"}},
        {"op":"replace","path":"/machine/network/interfaces","value":[{"interface":"eth0","$patch":"delete"}]}]"#;
    assert_eq!(
        warnings(&[patch]),
        [
            format!("line 4: machine.network.interfaces[0].$patch: {reason}"),
            format!("line 2: machine.kubelet.$patch: {reason}"),
            format!("line 2: machine.kubelet.extraConfig.a.$patch: {reason}"),
            format!("line 3: machine.sysctls.$patch: {reason}"),
        ]
        .map(String::from)
    );
}
