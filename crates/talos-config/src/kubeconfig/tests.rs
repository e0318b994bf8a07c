use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

const MINE: &str = r#"# mine
apiVersion: v1
kind: Config
clusters:
- cluster:
    server: https://10.0.0.1:6443 # the first
    extensions: []
  name: lab
contexts:
- context:
    cluster: lab
    user: admin@lab
  name: admin@lab
current-context: admin@lab
preferences: {}
users:
- name: admin@lab
  user:
    token: old
"#;

const SAME_SERVER: &str = r#"apiVersion: v1
kind: Config
clusters:
  - name: lab
    cluster:
      server: https://10.0.0.1:6443
      extensions: []
users:
  - name: admin@lab
    user:
      token: new
contexts:
  - context:
      cluster: lab
      namespace: default
      user: admin@lab
    name: admin@lab
current-context: admin@lab
"#;

fn check(
    incoming: &str,
    name: Option<&str>,
    resolution: Resolution,
    report: &Expect,
    text: &Expect,
) {
    let mut mine = Kubeconfig::parse("mine", MINE).unwrap();
    let other = Kubeconfig::parse("other", incoming).unwrap();
    let merged = mine.merge(&other, name, &mut |_| resolution).unwrap();
    let mut lines: Vec<String> = merged
        .renamed
        .iter()
        .map(|(kind, change)| format!("{kind} {} -> {}", change.from, change.to))
        .collect();
    lines.extend(
        merged
            .overwritten
            .iter()
            .map(|conflict| format!("{} {} overwritten", conflict.kind, conflict.name)),
    );
    lines.push(format!("current {}", merged.current.unwrap_or_default()));
    report.assert_eq(&lines.join("\n"));
    text.assert_eq(mine.text());
    let access = mine.access(None).unwrap();
    assert_eq!(access.cluster.server, other.clusters()[0].value.server);
    assert_eq!(access.user.token, other.users()[0].value.token);
}

#[test]
fn a_conflict_is_renamed_and_equal_entries_stay() {
    check(
        SAME_SERVER,
        None,
        Resolution::Rename,
        &expect![[r#"
            user admin@lab -> admin@lab-1
            context admin@lab -> admin@lab-1
            current admin@lab-1"#]],
        &expect![[r#"
            # mine
            apiVersion: v1
            kind: Config
            clusters:
            - cluster:
                server: https://10.0.0.1:6443 # the first
                extensions: []
              name: lab
            contexts:
            - context:
                cluster: lab
                user: admin@lab
              name: admin@lab
            - context:
                cluster: lab
                namespace: default
                user: admin@lab-1
              name: admin@lab-1
            current-context: admin@lab-1
            preferences: {}
            users:
            - name: admin@lab
              user:
                token: old
            - user:
                token: new
              name: admin@lab-1
        "#]],
    );
}

#[test]
fn a_conflict_is_overwritten_in_place() {
    check(
        SAME_SERVER,
        None,
        Resolution::Overwrite,
        &expect![[r#"
            user admin@lab overwritten
            context admin@lab overwritten
            current admin@lab"#]],
        &expect![[r#"
            # mine
            apiVersion: v1
            kind: Config
            clusters:
            - cluster:
                server: https://10.0.0.1:6443 # the first
                extensions: []
              name: lab
            contexts:
            - context:
                cluster: lab
                user: admin@lab
                namespace: default
              name: admin@lab
            current-context: admin@lab
            preferences: {}
            users:
            - name: admin@lab
              user:
                token: new
        "#]],
    );
}

#[test]
fn a_renamed_cluster_takes_its_user_and_context_along() {
    check(
        &SAME_SERVER.replace("10.0.0.1", "10.9.9.9"),
        None,
        Resolution::Rename,
        &expect![[r#"
            cluster lab -> lab-1
            user admin@lab -> admin@lab-1
            context admin@lab -> admin@lab-1
            current admin@lab-1"#]],
        &expect![[r#"
            # mine
            apiVersion: v1
            kind: Config
            clusters:
            - cluster:
                server: https://10.0.0.1:6443 # the first
                extensions: []
              name: lab
            - cluster:
                server: https://10.9.9.9:6443
                extensions: []
              name: lab-1
            contexts:
            - context:
                cluster: lab
                user: admin@lab
              name: admin@lab
            - context:
                cluster: lab-1
                namespace: default
                user: admin@lab-1
              name: admin@lab-1
            current-context: admin@lab-1
            preferences: {}
            users:
            - name: admin@lab
              user:
                token: old
            - user:
                token: new
              name: admin@lab-1
        "#]],
    );
}

#[test]
fn the_context_can_be_given_a_name() {
    let mut mine = Kubeconfig::parse("mine", MINE).unwrap();
    let other = Kubeconfig::parse("other", SAME_SERVER).unwrap();
    let merged = mine
        .merge(&other, Some("prod"), &mut |_| Resolution::Rename)
        .unwrap();
    assert_eq!(merged.current.as_deref(), Some("prod"));
    assert_eq!(mine.access(Some("prod")).unwrap().user_name, "admin@lab-1");
    assert_eq!(mine.current(), Some("prod"));
}

#[test]
fn merging_twice_changes_nothing_more() {
    let mut mine = Kubeconfig::parse("mine", MINE).unwrap();
    let other = Kubeconfig::parse("other", SAME_SERVER).unwrap();
    let overwrite = &mut |_: &Conflict| Resolution::Overwrite;
    mine.merge(&other, None, overwrite).unwrap();
    let once = mine.text().to_string();
    let merged = mine.merge(&other, None, overwrite).unwrap();
    assert_eq!((mine.text(), merged.overwritten), (once.as_str(), vec![]));
}

#[test]
fn a_file_without_entries_takes_them() {
    let mut mine = Kubeconfig::parse("mine", "apiVersion: v1\nclusters: null\n").unwrap();
    let other = Kubeconfig::parse("other", SAME_SERVER).unwrap();
    mine.merge(&other, None, &mut |_| Resolution::Rename)
        .unwrap();
    assert_eq!(
        mine.access(None).unwrap().cluster.server,
        "https://10.0.0.1:6443"
    );
}

fn refused(text: &str, expected: &str) {
    let error = Kubeconfig::parse("~/.kube/config", text).unwrap_err();
    assert_eq!(error.to_string(), format!("~/.kube/config{expected}"));
}

#[test]
fn what_is_wrong_is_named() {
    refused("", " is empty");
    refused("# nothing\n", " is empty");
    refused("a: [", " is not YAML (line 1, column 4)");
    refused("[]", ": the whole file must be a mapping");
    refused("clusters: x", ": clusters must be a list");
    refused("clusters: [x]", ": clusters[0] must be a mapping");
    refused("users: [{user: {}}]", ": users[0].name must be a text");
    refused(
        "users: [{name: a, user: [x]}]",
        ": users[0].user must be a mapping",
    );
    refused(
        "clusters: [{name: a, cluster: {certificate-authority-data: '%'}}]",
        ": clusters[0].cluster.certificate-authority-data must be base64",
    );
    refused(
        "clusters: [{name: a, cluster: {insecure-skip-tls-verify: maybe}}]",
        ": clusters[0].cluster.insecure-skip-tls-verify must be true or false",
    );
}

#[test]
fn a_context_needs_its_cluster_and_user() {
    let text = "contexts: [{name: a, context: {cluster: b, user: c}}]\ncurrent-context: a\n";
    let config = Kubeconfig::parse("k", text).unwrap();
    assert_eq!(
        config.access(None).unwrap_err().to_string(),
        "k has no cluster \"b\""
    );
    assert_eq!(
        config.access(Some("x")).unwrap_err().to_string(),
        "k has no context \"x\""
    );
    let config = Kubeconfig::parse("k", "kind: Config\n").unwrap();
    assert_eq!(
        config.access(None).unwrap_err().to_string(),
        "k has no current context"
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(clusters|users|contexts|name|cluster|: |\\[|\\]|\\{|\\}|, |\n|- |  |x){0,20}") {
        let _ = Kubeconfig::parse("k", &text);
    }
}
