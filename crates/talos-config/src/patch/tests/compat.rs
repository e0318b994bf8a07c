//! What the official tool does and ours does not, unless it is asked to; each case as the official library answers.

use super::*;

/// Patches with the options of the official tool, and with our own.
fn both(config: &str, patch: &str, version: &str) -> [Result<String, String>; 2] {
    [true, false].map(|compat| {
        let options = Options {
            compat,
            ..Options::from(Schema::for_talos(version))
        };
        let patches = [Patch::parse(patch).unwrap()];
        let patched = apply_with(config, &patches, &options);
        patched.map(|patched| patched.text).map_err(|error| {
            let source = error.source().map(ToString::to_string);
            source.unwrap_or_else(|| error.to_string())
        })
    })
}

fn volume(provisioning: &str) -> String {
    format!(
        "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\nprovisioning: {provisioning}\n"
    )
}

#[test]
fn a_size_or_expression_that_a_patch_leaves_out_stays() {
    let config = volume("{diskSelector: {match: system_disk}, minSize: 1GB, maxSize: 2GB}");
    for version in ["1.13", "1.14"] {
        let [official, ours] = both(&config, &volume("{maxSize: 3GB}"), version);
        assert_eq!(
            official.unwrap(),
            volume("{diskSelector: {}, maxSize: 3GB}")
        );
        let kept = volume("{diskSelector: {match: system_disk}, minSize: 1GB, maxSize: 3GB}");
        assert_eq!(ours.unwrap(), kept);
    }
}

#[test]
fn a_share_replaces_a_size_in_bytes() {
    let [official, ours] = both(&volume("{maxSize: 2GB}"), &volume("{maxSize: 50%}"), "1.13");
    assert_eq!(official.unwrap(), volume("{maxSize: 2GB}"));
    assert_eq!(ours.unwrap(), volume("{maxSize: 50%}"));
}

#[test]
fn a_url_is_replaced_as_a_whole() {
    let config =
        |url: &str| format!("apiVersion: v1alpha1\nkind: SideroLinkConfig\napiUrl: {url}\n");
    let old = config("https://a.example/x?token=old");
    let [official, ours] = both(&old, &config("grpc://b.example:8081"), "1.13");
    assert_eq!(
        official.unwrap(),
        config("grpc://b.example:8081/x?token=old")
    );
    assert_eq!(ours.unwrap(), config("grpc://b.example:8081"));
}

#[test]
fn deleting_a_document_that_is_missing_is_an_error() {
    let config = "machine: {type: worker}\n";
    let patch = "apiVersion: v1alpha1\nkind: EventSinkConfig\n$patch: delete\n";
    for (version, official) in [
        ("1.11", format!("{config}---\n{{}}\n")),
        ("1.13", format!("{config}---\n{{}}\n")),
        ("1.14", config.to_owned()),
    ] {
        let [theirs, ours] = both(config, patch, version);
        assert_eq!(theirs.unwrap(), official);
        let want = "line 1: document EventSinkConfig: nothing to delete, the configuration has no such document";
        assert_eq!(ours.unwrap_err(), want);
    }
}

#[test]
fn half_of_a_key_pair_leaves_the_other_half() {
    let config = "machine: {ca: {crt: TUlJ, key: TUlJ}}\n";
    let [official, ours] = both(config, "machine: {ca: {crt: TUlK}}", "1.13");
    assert_eq!(official.unwrap(), "machine: {ca: {crt: TUlK, key: \"\"}}\n");
    assert_eq!(ours.unwrap(), "machine: {ca: {crt: TUlK, key: TUlJ}}\n");
}

#[test]
fn a_word_that_stands_for_zero_is_a_value() {
    let config = |word: &str| {
        format!("apiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: {word}\n")
    };
    let [official, ours] = both(&config("block"), &config("accept"), "1.13");
    assert_eq!(official.unwrap(), config("block"));
    assert_eq!(ours.unwrap(), config("accept"));
}

#[test]
fn nothing_in_a_free_object_is_passed_over() {
    let config = "machine: {kubelet: {extraConfig: {a: 1}}}\n";
    let [official, ours] = both(
        config,
        "machine: {kubelet: {extraConfig: {a: null}}}",
        "1.13",
    );
    official.unwrap_err();
    assert_eq!(ours.unwrap(), config);
}

#[test]
fn addresses_in_documents_can_be_patched_for_every_version() {
    let config = "apiVersion: v1alpha1\nkind: RoutingRuleConfig\nname: \"1000\"\nsrc: 10.0.0.0/8\ntable: main\n";
    let patch = config
        .replace("main", "default")
        .replace("src: 10.0.0.0/8\n", "");
    let [official, ours] = both(config, &patch, "1.13");
    official.unwrap_err();
    assert_eq!(ours.unwrap(), config.replace("main", "default"));
    let [official, _] = both(config, &patch, "1.14");
    assert_eq!(official.unwrap(), config.replace("main", "default"));
}

#[test]
fn a_json_patch_reaches_one_of_several_documents() {
    let config =
        "machine: {type: worker}\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n";
    let [official, ours] = both(
        config,
        r#"[{"op":"remove","path":"/machine/type"}]"#,
        "1.13",
    );
    official.unwrap_err();
    assert_eq!(ours.unwrap(), config.replace("{type: worker}", "{}"));
}
