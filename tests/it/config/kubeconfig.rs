//! `ichor kubeconfig`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::json;
use talos_config::kubeconfig::Kubeconfig;
use talos_sim::Options;

use super::{files, private};
use crate::cli::program::{Lab, Ran};

async fn lab() -> Lab {
    Lab::start(Options {
        controlplanes: 1,
        workers: 1,
        ..Options::default()
    })
    .await
}

/// Runs `kubeconfig` against the control plane.
fn run(lab: &Lab, args: &[&str]) -> Ran {
    lab.run(&[&["kubeconfig", "-n", &lab.nodes[0]], args].concat())
}

fn done(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn parsed(lab: &Lab, name: &str) -> Kubeconfig {
    Kubeconfig::parse(name, &private(&lab.home.path().join(name))).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_written_where_kubernetes_looks_for_it() {
    let lab = lab().await;
    let ran = run(&lab, &[]);
    done(&ran);
    assert_eq!(ran.stdout, "");
    let config = parsed(&lab, ".kube/config");
    let access = config.access(None).unwrap();
    assert_eq!(
        (access.context, access.cluster.server.as_str()),
        ("admin@cluster-1", lab.cluster.endpoint())
    );
    assert!(!ran.stderr.contains("PRIVATE"));
    // A lock that is left there stops every program built on client-go.
    assert_eq!(files(&lab.home.path().join(".kube")), ["config"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lock_of_kubectl_is_waited_for() {
    let lab = lab().await;
    let lock = lab.home.file(".kube/config.lock", "");
    let mut command = lab.home.command(&["kubeconfig", "-n", &lab.nodes[0]]);
    let ran = tokio::task::block_in_place(|| {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        while !said.contains("waiting for the lock of") {
            assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "{said}");
        }
        assert!(!lab.home.path().join(".kube/config").exists());
        std::fs::remove_file(lock).unwrap();
        Ran::from(child.wait_with_output().unwrap())
    });
    done(&ran);
    assert_eq!(files(&lab.home.path().join(".kube")), ["config"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn merging_again_renames_what_differs_or_replaces_it() {
    let lab = lab().await;
    let mine = lab.home.file(
        ".kube/config",
        "# mine\napiVersion: v1\nkind: Config\npreferences: {}\n",
    );
    done(&run(&lab, &[]));
    let ran = run(&lab, &["-o", "json"]);
    done(&ran);
    // The cluster is the same; the certificate is a new one.
    let expected = json!({
        "path": mine,
        "merged": true,
        "context": "admin@cluster-1-1",
        "renamed": [
            {"kind": "user", "from": "admin@cluster-1", "to": "admin@cluster-1-1"},
            {"kind": "context", "from": "admin@cluster-1", "to": "admin@cluster-1-1"},
        ],
        "overwritten": [],
    });
    assert_eq!(ran.json(), expected);
    let text = private(&lab.home.path().join(".kube/config"));
    assert!(
        text.starts_with("# mine\n") && text.contains("preferences: {}\n"),
        "{text}"
    );
    assert_eq!(
        parsed(&lab, ".kube/config").current(),
        Some("admin@cluster-1-1")
    );

    let ran = run(&lab, &["--force"]);
    done(&ran);
    assert_eq!(ran.stdout, "replaced user \"admin@cluster-1\"\n");
    let config = parsed(&lab, ".kube/config");
    assert_eq!(
        (config.users().len(), config.current()),
        (2, Some("admin@cluster-1"))
    );

    let ran = run(&lab, &[]);
    assert_eq!(
        ran.stdout,
        "renamed user \"admin@cluster-1\" -> \"admin@cluster-1-2\"\nrenamed context \"admin@cluster-1\" -> \"admin@cluster-1-2\"\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_context_is_called_as_the_user_wants() {
    let lab = lab().await;
    done(&run(&lab, &["--force-context-name", "prod"]));
    assert_eq!(parsed(&lab, ".kube/config").current(), Some("prod"));
    done(&run(&lab, &["--force-context-name", "second"]));
    let config = parsed(&lab, ".kube/config");
    let names: Vec<&str> = config
        .contexts()
        .iter()
        .map(|context| context.name.as_str())
        .collect();
    assert_eq!(
        (names, config.current()),
        (vec!["prod", "second"], Some("second"))
    );
    assert_eq!(config.access(None).unwrap().user_name, "admin@cluster-1-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_may_be_a_file_a_folder_or_stdout() {
    let lab = lab().await;
    done(&run(&lab, &["deep/er/config"]));
    parsed(&lab, "deep/er/config");
    std::fs::create_dir(lab.home.path().join("folder")).unwrap();
    done(&run(&lab, &["folder"]));
    parsed(&lab, "folder/kubeconfig");
    done(&run(&lab, &["--merge=false"]));
    parsed(&lab, "kubeconfig");

    let ran = run(&lab, &["-"]);
    done(&ran);
    let printed = Kubeconfig::parse("stdout", &ran.stdout).unwrap();
    assert!(printed.access(None).unwrap().user.key.is_some());
    assert!(!lab.home.path().join("-").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_existing_file_is_replaced_only_by_force() {
    let lab = lab().await;
    lab.home.file("mine", "kind: Config\n");
    let ran = run(&lab, &["mine", "-m=false", "-o", "json"]);
    assert_eq!(
        (ran.code, ran.error()["code"].as_str()),
        (Some(5), Some("conflict")),
        "{ran:?}"
    );
    // No certificate was issued for nothing.
    assert_eq!(lab.cluster.calls(), []);
    done(&run(&lab, &["mine", "-m=false", "-f"]));
    assert!(parsed(&lab, "mine").access(None).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn kubeconfig_names_the_file_if_it_is_one() {
    let lab = lab().await;
    let env = |value: &str| {
        let mut command = lab.home.command(&["kubeconfig", "-n", &lab.nodes[0]]);
        command.env("KUBECONFIG", value);
        tokio::task::block_in_place(|| Ran::from(command.output().unwrap()))
    };
    let path = lab.home.path().join("elsewhere");
    done(&env(path.to_str().unwrap()));
    parsed(&lab, "elsewhere");
    let ran = env("one:two");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("KUBECONFIG names 2 files"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_leaves_files_alone() {
    let lab = lab().await;
    let path = lab.home.path().join(".kube/config");
    let ran = lab.run(&["kubeconfig", "-n", &lab.nodes[1]]);
    assert_eq!(ran.code, Some(1), "a worker has none: {ran:?}");
    assert!(!path.exists());
    let ran = lab.run(&["kubeconfig"]);
    assert_eq!(ran.code, Some(2), "the context lists two nodes: {ran:?}");
    lab.home.file(".kube/config", "a: [");
    let ran = run(&lab, &[]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("is not YAML"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a: [");
}
