use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::{Expect, expect};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use talos_pki::{Algorithm, Authority, AuthorityKind, LeafRequest, LeafUsage, PrivateKey};

use super::*;

const FILE: &str = r#"# my clusters
context: lab
contexts:
    lab: # the old one
        endpoints:
            - 10.0.0.1 # the only one that answers
        target: 10.0.0.2
        nodes: [10.0.0.1]
        ca: Y2E=
        future: kept
    prod:
        endpoints: []
        auth:
            basic:
                username: u
                password: 12345
        cluster: c
        proxy-url: direct
"#;

fn parse(text: &str) -> TalosConfig {
    TalosConfig::parse("config", text).unwrap()
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}

#[test]
fn a_file_is_read() {
    let config = parse(FILE);
    let (name, lab) = config.select(None).unwrap();
    assert_eq!(name, "lab");
    assert_eq!(lab.endpoints, ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(lab.nodes, ["10.0.0.1"]);
    assert_eq!(lab.ca.as_deref(), Some("Y2E="));
    assert_eq!((&lab.auth, &lab.cluster), (&Auth::None, &None));
    let (_, prod) = config.select(Some("prod")).unwrap();
    let basic = Auth::Basic {
        username: "u".to_string(),
        password: Hidden::new("12345"),
    };
    assert_eq!(prod.auth, basic);
    assert_eq!(prod.cluster.as_deref(), Some("c"));
    assert_eq!(prod.proxy_url.as_deref(), Some("direct"));
}

#[test]
fn signed_requests_are_recognized() {
    let config = parse("contexts: {o: {auth: {siderov1: {identity: me@example.com}}}}");
    let (_, context) = config.select(Some("o")).unwrap();
    let identity = "me@example.com".to_string();
    assert_eq!(context.auth, Auth::SideroV1 { identity });
}

#[test]
fn nothing_secret_is_in_the_debug_text() {
    let text = format!("{:?}", parse(&FILE.replace("ca: Y2E=", "key: czNjcjN0")));
    assert!(
        !text.contains("czNjcjN0") && !text.contains("12345"),
        "{text}"
    );
}

fn refused(text: &str, expected: &str) {
    let error = TalosConfig::parse("~/.talos/config", text).unwrap_err();
    assert_eq!(error.to_string(), format!("~/.talos/config{expected}"));
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    refused("", " is empty");
    refused(" \n", " is empty");
    refused("# only this\n", " is empty");
    refused("context: [", " is not YAML (line 1, column 10)");
    refused(
        "contexts: {a: {}}\ncontexts: {}\n",
        " is not YAML (line 2, column 1)",
    );
    refused("- a", ": the whole file must be a mapping");
    refused("context: {}", ": context must be a text");
    refused("contexts: a", ": contexts must be a mapping");
    refused("contexts: {lab: a}", ": contexts.lab must be a mapping");
    refused(
        "contexts: {lab: {endpoints: a}}",
        ": contexts.lab.endpoints must be a list of texts",
    );
    refused(
        "contexts: {lab: {nodes: [{}]}}",
        ": contexts.lab.nodes must be a list of texts",
    );
    refused(
        "contexts: {lab: {key: [a]}}",
        ": contexts.lab.key must be a text",
    );
    refused(
        "contexts: {lab: {auth: a}}",
        ": contexts.lab.auth must be a mapping",
    );
    refused(
        "contexts: {lab: {auth: {basic: a}}}",
        ": contexts.lab.auth.basic must be a mapping",
    );
    refused(
        "contexts: {lab: {auth: {siderov1: {identity: []}}}}",
        ": contexts.lab.auth.siderov1.identity must be a text",
    );
}

#[test]
fn a_context_that_is_not_there_names_those_that_are() {
    let config = parse(FILE);
    let error = config.select(Some("x")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "config has no context \"x\"; it has lab, prod"
    );
    let error = parse(TalosConfig::EMPTY).select(None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "config has no current context; it has none"
    );
}

struct Material {
    ca: String,
    crt: String,
    key: String,
}

fn material(algorithm: Algorithm) -> Material {
    let now: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
    let authority = Authority::generate(AuthorityKind::Talos, now).unwrap();
    let request = LeafRequest {
        common_name: None,
        organizations: vec!["os:admin".to_string()],
        names: Vec::new(),
        usage: LeafUsage {
            key_encipherment: false,
            server: false,
            client: true,
        },
        lifetime: SignedDuration::from_hours(1),
        backdate: SignedDuration::ZERO,
    };
    let key = PrivateKey::generate(algorithm).unwrap();
    let certificate = authority
        .sign_leaf(&request, key.public_key_info(), now)
        .unwrap();
    Material {
        ca: authority.certificate().pem(),
        crt: certificate.pem(),
        key: key.pem().to_string(),
    }
}

fn with(ca: &str, crt: &str, key: &str) -> TalosConfig {
    let fields: Vec<String> = [("ca", ca), ("crt", crt), ("key", key)]
        .iter()
        .filter(|(_, pem)| !pem.is_empty())
        .map(|(name, pem)| format!("    {name}: {}\n", STANDARD.encode(pem)))
        .collect();
    parse(&format!(
        "contexts:\n  lab:\n    endpoints: []\n{}",
        fields.concat()
    ))
}

#[test]
fn several_authorities_and_keys_under_the_label_of_talos_are_read() {
    let (one, two) = (material(Algorithm::Ed25519), material(Algorithm::EcdsaP256));
    assert!(
        one.key.contains("BEGIN ED25519 PRIVATE KEY"),
        "{}",
        one.key.len()
    );
    assert!(
        two.key.contains("BEGIN EC PRIVATE KEY"),
        "{}",
        two.key.len()
    );
    for material in [&one, &two] {
        let both = format!("{}{}", one.ca, two.ca);
        let credentials = with(&both, &material.crt, &material.key)
            .credentials("lab")
            .unwrap();
        assert_eq!(credentials.authorities.len(), 2);
        let identity = credentials.identity.unwrap();
        assert_eq!(identity.chain[0].organizations(), ["os:admin"]);
    }
    let none = with("", "", "").credentials("lab").unwrap();
    assert!(none.authorities.is_empty() && none.identity.is_none());
}

#[test]
fn broken_credentials_name_the_file_the_context_and_the_field() {
    let good = material(Algorithm::Ed25519);
    let other = material(Algorithm::Ed25519);
    let check = |config: TalosConfig, expected: &str| {
        let error = config.credentials("lab").unwrap_err();
        assert_eq!(error.to_string(), format!("config{expected}"));
    };
    let at = ": context \"lab\": ";
    check(with("text", "", ""), &format!("{at}ca cannot be read"));
    check(
        with(&good.ca, "text", &good.key),
        &format!("{at}crt cannot be read"),
    );
    check(
        with(&good.ca, &good.crt, "text"),
        &format!("{at}key cannot be read"),
    );
    check(
        with(&good.ca, &good.crt, &good.ca),
        &format!("{at}key cannot be read"),
    );
    check(
        with(&good.ca, &good.crt, &other.key),
        &format!("{at}key does not belong to crt"),
    );
    check(
        with(&good.ca, &good.crt, ""),
        ": context \"lab\" has a crt but no key",
    );
    check(
        with(&good.ca, "", &good.key),
        ": context \"lab\" has a key but no crt",
    );
    check(
        parse("contexts: {lab: {ca: '%'}}"),
        &format!("{at}ca is not base64"),
    );
}

fn edited(change: impl FnOnce(&mut TalosConfig) -> Result<(), Error>, expected: &Expect) {
    let mut config = parse(FILE);
    change(&mut config).unwrap();
    let before: Vec<&str> = FILE.lines().collect();
    let after: Vec<&str> = config.text().lines().collect();
    let gone = before.iter().filter(|line| !after.contains(line));
    let new = after.iter().filter(|line| !before.contains(line));
    let lines: Vec<String> = gone
        .map(|line| format!("-{line}"))
        .chain(new.map(|line| format!("+{line}")))
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn edits_touch_only_what_they_change() {
    edited(
        |config| config.set_current("prod"),
        &expect![[r#"
            -context: lab
            +context: prod"#]],
    );
    edited(
        |config| config.set_endpoints("lab", &strings(&["10.0.0.1", "10.0.0.3"])),
        &expect![[r#"
            -        target: 10.0.0.2
            +            - 10.0.0.3"#]],
    );
    edited(
        |config| config.set_nodes("lab", &[]),
        &expect!["-        nodes: [10.0.0.1]"],
    );
    edited(
        |config| config.set_nodes("prod", &strings(&["a"])),
        &expect![[r#"
            +        nodes:
            +            - a"#]],
    );
    edited(
        |config| config.remove_context("prod"),
        &expect![[r#"
            -    prod:
            -        endpoints: []
            -        auth:
            -            basic:
            -                username: u
            -                password: 12345
            -        cluster: c
            -        proxy-url: direct"#]],
    );
    let new = Context {
        endpoints: strings(&["h"]),
        ca: Some("YQ==".to_string()),
        ..Context::default()
    };
    edited(
        |config| config.put_context("new", &new),
        &expect![[r#"
            +    new:
            +            - h
            +        ca: YQ=="#]],
    );
}

#[test]
fn what_is_put_into_a_file_is_read_back() {
    let contexts = parse(FILE).contexts().clone();
    let mut config = parse(TalosConfig::EMPTY);
    for (name, context) in &contexts {
        config.put_context(name, context).unwrap();
    }
    config.set_current("prod").unwrap();
    assert_eq!(config.contexts(), &contexts);
    assert_eq!(parse(config.text()).current(), Some("prod"));
}

#[test]
fn the_current_context_is_not_removed() {
    let error = parse(FILE).remove_context("lab").unwrap_err();
    assert_eq!(
        error.to_string(),
        "config: context \"lab\" is the current one and stays"
    );
}

fn merged(into: &str, from: &str) -> (Vec<String>, String, Vec<String>) {
    let mut config = parse(into);
    let renamed = config.merge(&parse(from)).unwrap();
    let renamed = renamed
        .iter()
        .map(|one| format!("{}->{}", one.from, one.to));
    let current = config.current().unwrap_or_default().to_string();
    let names = config.contexts().keys().cloned().collect();
    (renamed.collect(), current, names)
}

#[test]
fn a_merge_renames_what_is_taken() {
    let mine = "context: one\ncontexts: {one: {endpoints: [a]}}\n";
    let check = |from, renamed: &[&str], current: &str, names: &[&str]| {
        let expected = (strings(renamed), current.to_string(), strings(names));
        assert_eq!(merged(mine, from), expected, "{from}");
    };
    check("contexts: {two: {}}", &[], "one", &["one", "two"]);
    check(
        "context: two\ncontexts: {two: {}}",
        &[],
        "two",
        &["one", "two"],
    );
    check(
        "context: one\ncontexts: {one: {}}",
        &["one->one-1"],
        "one-1",
        &["one", "one-1"],
    );
    check(
        "context: gone\ncontexts: {two: {}}",
        &[],
        "",
        &["one", "two"],
    );
    // The same file merged twice changes nothing.
    check(
        "context: one\ncontexts: {one: {endpoints: [a]}}",
        &[],
        "one",
        &["one"],
    );
    // Sorted, so that the outcome is always the same: the newcomer one takes one-1 first.
    check(
        "contexts: {one-1: {endpoints: [b]}, one: {}}",
        &["one->one-1", "one-1->one-1-1"],
        "one",
        &["one", "one-1", "one-1-1"],
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(context|contexts|endpoints|auth|basic|: |\\[|\\]|\\{|\\}|, |\n|- |  |x){0,20}") {
        let _ = TalosConfig::parse("config", &text);
    }

    #[test]
    fn every_name_survives_being_written(name in "[a-oq-zA-Z0-9@:_. -]{1,12}", endpoint in "[a-z0-9:./\\[\\]-]{1,16}") {
        let mut config = parse(FILE);
        let context = Context { endpoints: vec![endpoint], ..Context::default() };
        config.put_context(&name, &context).unwrap();
        config.set_current(&name).unwrap();
        prop_assert_eq!(config.select(None).unwrap(), (name.as_str(), &context));
        let before = parse(FILE);
        prop_assert_eq!(&config.contexts()["prod"], &before.contexts()["prod"]);
    }
}
