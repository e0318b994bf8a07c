//! Texts that are no patch or no configuration, and those that say nothing.

use super::*;

#[test]
fn a_patch_of_neither_form_gets_one_clear_error() {
    for (text, want) in [
        (
            "hello world",
            "neither a strategic merge patch nor a JSON Patch: a single value",
        ),
        (
            "patch.yaml",
            "neither a strategic merge patch nor a JSON Patch: a single word; a file is named by `@FILE`",
        ),
        (
            "5",
            "neither a strategic merge patch nor a JSON Patch: a single value",
        ),
        (
            "[1]",
            "line 1: operation 1 of the JSON Patch: expected a mapping with `op` and `path`",
        ),
        (
            "[{\"op\": \"add\"}]",
            "line 1: operation 1 of the JSON Patch: `path` is missing",
        ),
        (
            "- op: add\n  path: /a\n",
            "line 1: operation 1 of the JSON Patch: `add` of `/a` lacks its `value`",
        ),
        (
            "[{\"op\": \"remove\", \"path\": \"a.b\"}]",
            "line 1: operation 1 of the JSON Patch: `path` is no JSON pointer: `a.b` does not start with `/`",
        ),
    ] {
        assert_eq!(Patch::parse(text).unwrap_err().to_string(), want);
    }
    refused(
        CONFIG,
        r#"{"op": "remove", "path": "/machine"}"#,
        "1.13",
        "neither a strategic merge patch nor a JSON Patch: one operation alone; a JSON Patch is a list of operations",
    );
}

#[test]
fn a_text_that_is_no_configuration_is_not_patched() {
    for text in ["just text\n", "version: v1alpha1\n---\n- a\n"] {
        let patch = Patch::parse("machine: {type: worker}\n").unwrap();
        let error = apply(text, &[patch], Schema::newest()).unwrap_err();
        assert!(error.to_string().contains("is a mapping"), "{error}");
    }
}

#[test]
fn a_patch_that_says_what_is_already_so_changes_nothing() {
    let patches = [
        r#"[{"op":"replace","path":"/machine/type","value":"controlplane"}]"#,
        "machine: {type: controlplane, sysctls: {vm.swappiness: \"10\"}}",
        "",
        "# nothing",
        "version: v1alpha1",
    ];
    assert_eq!(patched(CONFIG, &patches, "1.13").unwrap().text, CONFIG);
}

#[test]
fn patches_that_say_nothing_change_nothing_and_are_told() {
    let config = "# as it is\nmachine: {type: worker}\n";
    for patch in [
        "",
        "\n",
        "# nothing\n",
        "---\n",
        "null",
        "[]",
        "{}",
        "version: v1alpha1",
    ] {
        let made = patched(config, &[patch], "1.13").unwrap();
        assert_eq!(made.text, config, "{patch}");
        assert_eq!(
            made.warnings,
            ["it says nothing, and changes nothing"],
            "{patch}"
        );
    }
    // The official tool takes an empty text and an empty list, but no empty mapping.
    for (patch, is_taken) in [("", true), ("[]", true), ("{}", false)] {
        let options = Options {
            compat: true,
            ..Options::from(Schema::for_talos("1.13"))
        };
        let made = apply_with(config, &[Patch::parse(patch).unwrap()], &options);
        assert_eq!(made.is_ok(), is_taken, "{patch}");
    }
}

#[test]
fn a_document_that_no_configuration_has_is_refused() {
    for (text, want) in [
        (
            "hello: world\n",
            "line 1: no document of a machine configuration: it has no `kind`, and no key of the main document",
        ),
        (
            "machine: {}\n---\ncontexts: {}\n",
            "line 3: no document of a machine configuration: it has no `kind`, and no key of the main document",
        ),
        (
            "just text\n",
            "line 1: a document of a machine configuration is a mapping, and this is none",
        ),
    ] {
        let error = patched(text, &["machine: {type: worker}"], "1.13").unwrap_err();
        assert_eq!(error.to_string(), want);
    }
}
