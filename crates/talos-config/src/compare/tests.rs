use super::*;
use crate::patch::{Patch, apply};

fn schema() -> Schema {
    Schema::for_talos("1.13.9")
}

fn shown(a: &str, b: &str) -> Vec<String> {
    let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
    texts(a, b, schema())
        .unwrap()
        .iter()
        .map(|change| {
            format!(
                "{} {}:{} {}->{} @{}/{}",
                change.kind,
                change.document,
                change.path,
                text(&change.old),
                text(&change.new),
                change.old_line.unwrap_or_default(),
                change.new_line.unwrap_or_default(),
            )
        })
        .collect()
}

/// Returns the patches from A to B after seeing that they hold.
fn patches(a: &str, b: &str, version: &str) -> Vec<String> {
    let schema = Schema::for_talos(version);
    let texts = as_patch(a, b, schema).unwrap();
    let parsed: Vec<Patch> = texts
        .iter()
        .map(|text| Patch::parse(text).unwrap())
        .collect();
    let patched = apply(a, &parsed, schema).unwrap();
    assert_eq!(super::texts(&patched.text, b, schema).unwrap(), []);
    texts
}

#[test]
fn order_comments_and_ways_of_writing_mean_nothing() {
    let a = "machine: {type: worker, sysctls: {a: 0644}, certSANs: [], network: null}\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n---\napiVersion: v1alpha1\nkind: ZswapConfig\nmaxPoolPercent: 5\n";
    let b = "apiVersion: v1alpha1 # first\nmaxPoolPercent: 0x5\nkind: ZswapConfig\n---\nmachine:\n  sysctls:\n    a: \"0644\"\n  type: 'worker'\n---\nhostname: a\nkind: HostnameConfig\napiVersion: v1alpha1\n";
    assert_eq!(shown(a, b), [""; 0]);
}

#[test]
fn an_optional_value_that_is_there_is_not_an_absent_one() {
    let a = "machine: {kubelet: {image: a}}\ndebug: false\n";
    let b = "machine: {kubelet: {image: a, defaultRuntimeSeccompProfileEnabled: false}}\n";
    assert_eq!(
        shown(a, b),
        [
            "added :machine.kubelet.defaultRuntimeSeccompProfileEnabled -->false @1/1",
            "removed :debug false->- @2/1"
        ]
    );
}

#[test]
fn lists_are_compared_in_order_and_interfaces_by_name() {
    let a = "machine:\n  certSANs: [a, b, c]\n  network:\n    interfaces:\n      - interface: eth0\n        mtu: 1500\n      - interface: eth1\n";
    let b = "machine:\n  certSANs: [b, c, d]\n  network:\n    interfaces:\n      - interface: eth1\n      - interface: eth0\n        mtu: 9000\n";
    assert_eq!(
        shown(a, b),
        [
            "removed :machine.certSANs[0] \"a\"->- @2/2",
            "added :machine.certSANs[2] -->\"d\" @2/2",
            "changed :machine.network.interfaces[interface=eth0].mtu 1500->9000 @6/7",
        ]
    );
}

#[test]
fn documents_come_and_go_as_a_whole() {
    let a = "machine: {type: worker}\n---\napiVersion: v1alpha1\nkind: VLANConfig\nname: eth0.5\nvlanID: 5\n";
    let b = "machine: {type: worker}\n---\napiVersion: v1alpha1\nkind: VLANConfig\nname: eth0.6\nvlanID: 6\n";
    assert_eq!(
        shown(a, b),
        [
            "removed VLANConfig/eth0.5: {\"apiVersion\":\"v1alpha1\",\"kind\":\"VLANConfig\",\"name\":\"eth0.5\",\"vlanID\":5}->- @3/0",
            "added VLANConfig/eth0.6: -->{\"apiVersion\":\"v1alpha1\",\"kind\":\"VLANConfig\",\"name\":\"eth0.6\",\"vlanID\":6} @0/3",
        ]
    );
}

#[test]
fn the_smallest_patch_says_only_what_differs() {
    let a =
        "machine:\n  type: worker\n  certSANs: [a]\n  env: {A: b, C: d}\n  sysctls: {net.x: '1'}\n";
    let b = "machine:\n  type: worker\n  certSANs: [a, b]\n  env: {A: e}\n  sysctls: {net.x: '1'}\ncluster: {clusterName: c}\n";
    assert_eq!(
        patches(a, b, "1.13.9"),
        [
            "machine:\n    certSANs:\n        - b\n    env:\n        A: e\n        C:\n            $patch: delete\ncluster:\n    clusterName: c\n"
        ]
    );
}

#[test]
fn a_list_that_loses_a_word_takes_two_steps_before_1_14() {
    let a = "machine: {certSANs: [a, b, c]}\n";
    let b = "machine: {certSANs: [a, c]}\n";
    let two = [
        "machine:\n    certSANs:\n        $patch: delete\n",
        "machine:\n    certSANs:\n        - a\n        - c\n",
    ];
    assert_eq!(patches(a, b, "1.13.9"), two);
    assert_eq!(patches(a, b, "1.14.1"), [two.join("---\n")]);
}

#[test]
fn elements_of_lists_are_taken_out_by_what_tells_them() {
    let a = "machine: {files: [{path: /a, content: x}, {path: /b, content: x}], network: {interfaces: [{interface: eth0, mtu: 1}, {interface: eth1, addresses: [1.2.3.4/8]}]}}\n";
    let b = "machine: {files: [{path: /a, content: x}, {path: /c, content: y}], network: {interfaces: [{interface: eth0, mtu: 2}, {interface: eth1}]}}\n";
    assert_eq!(
        patches(a, b, "1.11.5"),
        [
            "machine:\n    files:\n        - path: /b\n          $patch: delete\n        - path: /c\n          content: \"y\"\n    network:\n        interfaces:\n            - interface: eth0\n              mtu: 2\n            - interface: eth1\n              $patch: delete\n            - interface: eth1\n"
        ]
    );
}

#[test]
fn zeros_that_merging_passes_over_are_set_anew() {
    let a = "machine: {nodeLabels: {a: b}}\n---\napiVersion: v1alpha1\nkind: KubeSpanConfig\nmtu: 1400\n";
    let b =
        "machine: {nodeLabels: {a: ''}}\n---\napiVersion: v1alpha1\nkind: KubeSpanConfig\nmtu: 0\n";
    assert_eq!(
        patches(a, b, "1.13.9"),
        [
            "machine:\n    nodeLabels:\n        a:\n            $patch: delete\n---\napiVersion: v1alpha1\nkind: KubeSpanConfig\nmtu: 0\n",
            "machine:\n    nodeLabels:\n        a: \"\"\n",
        ]
    );
}

#[test]
fn what_no_strategic_patch_does_is_said() {
    let a = "machine: {type: worker}\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: off\n";
    let b = "apiVersion: v1alpha1\nkind: HostnameConfig\nauto: off\n";
    let error = as_patch(a, b, schema()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the main document: a strategic merge patch cannot take it away"
    );
    let error = as_json_patch(a, b, schema()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a JSON Patch changes a document and can neither add nor remove one; only the first configuration has the main document"
    );
    let twice = format!("{b}---\n{b}");
    let error = as_patch(&twice, b, schema()).unwrap_err();
    assert_eq!(error.to_string(), "the first configuration");
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(
        source.to_string(),
        "HostnameConfig stands twice in the configuration, on lines 1 and 5"
    );
}

#[test]
fn json_patches_are_told_by_document() {
    let a = "machine: {type: worker}\n---\napiVersion: v1alpha1\nkind: VLANConfig\nname: eth0.5\nvlanID: 5\n";
    let b = "machine: {type: init}\n---\napiVersion: v1alpha1\nkind: VLANConfig\nname: eth0.5\nvlanID: 6\n";
    let patches = as_json_patch(a, b, schema()).unwrap();
    let shown: Vec<String> = patches
        .iter()
        .map(|patch| format!("{} {}", patch.document, patch.operations))
        .collect();
    assert_eq!(
        shown,
        [
            " [{\"op\":\"replace\",\"path\":\"/machine/type\",\"value\":\"init\"}]",
            "VLANConfig/eth0.5 [{\"op\":\"replace\",\"path\":\"/vlanID\",\"value\":6}]",
        ]
    );
}

#[test]
fn names_that_read_as_numbers_tell_documents_apart() {
    let mirror = |name: &str, url: &str| {
        format!(
            "apiVersion: v1alpha1\nkind: RegistryMirrorConfig\nname: {name}\nendpoints: [{{url: {url}}}]\n"
        )
    };
    let (five, six) = (mirror("5", "https://a"), mirror("06", "https://b"));
    let a = format!("{five}---\n{six}");
    assert_eq!(shown(&a, &format!("{six}---\n{five}")), [""; 0]);
    let b = format!("{}---\n{five}", mirror("06", "https://c"));
    assert_eq!(
        texts(&a, &b, schema()).unwrap()[0].document,
        "RegistryMirrorConfig/06"
    );
    assert_eq!(patches(&a, &b, "1.13.9").len(), 1);
    assert_eq!(patches(&a, &six, "1.13.9").len(), 1);
    assert_eq!(patches(&six, &a, "1.13.9").len(), 1);
}

#[test]
fn many_documents_and_interfaces_are_compared_one_by_one() {
    let text = |mtu: usize| {
        let interfaces: String = (0..500)
            .map(|at| format!("      - interface: eth{at}\n        mtu: {mtu}\n"))
            .collect();
        let links: String = (0..1500)
            .map(|at| {
                format!("---\napiVersion: v1alpha1\nkind: LinkConfig\nname: l{at}\nmtu: {mtu}\n")
            })
            .collect();
        format!("machine:\n  network:\n    interfaces:\n{interfaces}{links}")
    };
    let (a, b) = (text(1400), text(1500));
    assert_eq!(texts(&a, &b, schema()).unwrap().len(), 2000);
    assert_eq!(as_patch(&a, &b, schema()).unwrap().len(), 1);
}
