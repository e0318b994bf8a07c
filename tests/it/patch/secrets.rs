//! Secrets stay hidden in everything that is printed.

use serde_json::Value;
use talos_sim::Options;

use super::{active, done};
use crate::cli::program::{Lab, Ran};

fn hides(ran: &Ran, secrets: &[String]) {
    for secret in secrets {
        assert!(
            !ran.stdout.contains(secret) && !ran.stderr.contains(secret),
            "{secret} in {ran:?}"
        );
    }
}

/// Returns the secrets of a configuration that the tests look for.
fn secrets(text: &str) -> Vec<String> {
    let main: Value = talos_config::yaml::read_documents(text).unwrap().remove(0);
    let paths = [
        "/machine/token",
        "/machine/ca/key",
        "/cluster/token",
        "/cluster/secret",
        "/cluster/ca/key",
        "/cluster/secretboxEncryptionSecret",
        "/cluster/serviceAccount/key",
        "/cluster/aggregatorCA/key",
    ];
    let found: Vec<String> = paths
        .iter()
        .filter_map(|path| main.pointer(path)?.as_str().map(str::to_owned))
        .collect();
    assert!(found.len() >= 7, "{}", found.len());
    found
}

const PATCH: &str = r#"
machine:
    token: newnew.0123456789abcdef
cluster:
    secret: bmV3IGNsdXN0ZXIgc2VjcmV0IGZvciB0aGlzIHRlc3Q=
    inlineManifests:
        - name: s
          contents: |
              apiVersion: v1
              kind: Secret
              metadata: {name: s}
              stringData:
                  password: open-sesame-123
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_hides_secrets_but_shows_that_they_change() {
    let lab = Lab::start(Options::default()).await;
    let mut hidden = secrets(&active(&lab, 0));
    hidden.extend(
        [
            "newnew.0123456789abcdef",
            "bmV3IGNsdXN0ZXIgc2VjcmV0IGZvciB0aGlzIHRlc3Q=",
            "open-sesame-123",
        ]
        .map(str::to_owned),
    );
    let args = ["patch", "mc", "-n", &lab.nodes[0], "-p", PATCH, "--dry-run"];
    let ran = lab.run(&args);
    done(&ran);
    hides(&ran, &hidden);
    assert!(
        ran.stdout.contains("-    token: ******") && ran.stdout.contains("+    token: ******"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("password: ******"), "{ran:?}");
    let json = lab.run(&[&args[..], &["-o", "json"]].concat());
    done(&json);
    hides(&json, &hidden);
    let shown = lab.run(&[&args[..], &["--show-secrets"]].concat());
    for secret in [
        "newnew.0123456789abcdef",
        "open-sesame-123",
        hidden[0].as_str(),
    ] {
        assert!(shown.stdout.contains(secret), "{secret} in {shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_node_says_is_hidden_too() {
    let lab = Lab::start(Options::default()).await;
    let mut hidden = secrets(&active(&lab, 0));
    hidden.push("newnew.0123456789abcdef".to_owned());
    // The token needs a reboot, and the node's reason quotes the difference.
    let refused = lab.run(&[
        "patch",
        "mc",
        "-n",
        &lab.nodes[0],
        "-p",
        "machine: {token: newnew.0123456789abcdef}",
        "-m",
        "no-reboot",
    ]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    hides(&refused, &hidden);
    let bogus =
        r#"[{"op":"add","path":"/cluster/bogus","value":{"token":"newnew.0123456789abcdef"}}]"#;
    let unknown = lab.run(&["patch", "mc", "-n", &lab.nodes[0], "-p", bogus]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    hides(&unknown, &hidden);
}
