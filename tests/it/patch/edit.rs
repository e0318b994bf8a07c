//! `ichor edit` with editors that are scripts.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use talos_sim::{Options, TalosVersion};

use super::{active, done, refused};
use crate::cli::program::{Lab, Ran};

/// Runs the program with an editor of these shell lines; `$1` is the file.
fn edit(lab: &Lab, script: &str, args: &[&str]) -> Ran {
    let editor = lab.home.file(
        "editor",
        &format!(
            "#!/bin/sh\nset -e\ncd {}\nchange() {{ sed \"$1\" \"$2\" >changed && cat changed >\"$2\"; }}\n{script}\n",
            lab.home.path().display()
        ),
    );
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o700)).unwrap();
    let tmp = lab.home.path().join("tmp");
    std::fs::create_dir_all(&tmp).unwrap();
    let mut command = lab
        .home
        .command(&[&["edit", "mc", "-n", &lab.nodes[0]], args].concat());
    command
        .env("TALOS_EDITOR", &editor)
        .env("PATH", "/usr/bin:/bin")
        .env("TMPDIR", &tmp);
    tokio::task::block_in_place(|| command.output().unwrap().into())
}

/// Returns the texts that were left behind.
fn kept(lab: &Lab) -> Vec<String> {
    let files = std::fs::read_dir(lab.home.path().join("tmp")).unwrap();
    files
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_configuration_is_applied() {
    let lab = Lab::start(Options::default()).await;
    let before = active(&lab, 0);
    let ran = edit(
        &lab,
        "cp \"$1\" seen; change 's/clusterName: cluster-1/clusterName: edited/' \"$1\"",
        &[],
    );
    done(&ran);
    assert_eq!(
        active(&lab, 0),
        before.replace("clusterName: cluster-1", "clusterName: edited")
    );
    let seen = std::fs::read_to_string(lab.home.path().join("seen")).unwrap();
    assert!(
        seen.starts_with(&format!(
            "# ichor: the machine configuration of {}",
            lab.nodes[0]
        )),
        "{seen}"
    );
    assert!(seen.ends_with(&before));
    assert_eq!(kept(&lab), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_or_empty_text_is_not_sent() {
    let lab = Lab::start(Options::default()).await;
    for script in ["true", ": > \"$1\""] {
        let ran = edit(&lab, script, &[]);
        done(&ran);
        assert!(ran.stdout.contains("edit cancelled"), "{ran:?}");
    }
    assert_eq!(lab.changes(), Vec::<String>::new());
    assert_eq!(kept(&lab), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_text_opens_again_with_the_reasons() {
    let lab = Lab::start(Options::default()).await;
    let script = r#"
if [ ! -e first ]; then
    touch first; change 's/type: controlplane/type: potato/' "$1"
elif [ ! -e second ]; then
    cp "$1" second; change 's/type: potato/type: [/' "$1"
else
    cp "$1" third; change 's/type: \[/type: controlplane/; s/clusterName: cluster-1/clusterName: fixed/' "$1"
fi"#;
    done(&edit(&lab, script, &[]));
    assert!(active(&lab, 0).contains("clusterName: fixed"));
    let read = |name: &str| std::fs::read_to_string(lab.home.path().join(name)).unwrap();
    assert!(
        read("second").contains("# ichor: It was refused:"),
        "{}",
        read("second")
    );
    assert!(
        read("second").contains("unknown machine type"),
        "{}",
        read("second")
    );
    assert!(
        read("third").contains("not valid YAML"),
        "{}",
        read("third")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_never_lost() {
    let lab = Lab::start(Options::default()).await;
    let before = active(&lab, 0);
    let script = "[ -e once ] || change 's/type: controlplane/type: potato/' \"$1\"; touch once";
    let ran = edit(&lab, script, &[]);
    refused(
        &ran,
        2,
        &[
            "was not changed after it was refused",
            "unknown machine type",
            "the text is kept in",
        ],
    );
    assert!(kept(&lab)[0].contains("type: potato"));
    let failed = edit(&lab, "change 's/cluster-1/failed/' \"$1\"; exit 3", &[]);
    refused(&failed, 1, &["the editor", "the text is kept in"]);
    assert!(
        kept(&lab)
            .iter()
            .any(|text| text.contains("clusterName: failed"))
    );
    assert_eq!(active(&lab, 0), before);
    let tmp = lab.home.path().join("tmp");
    for file in std::fs::read_dir(tmp).unwrap() {
        assert_eq!(
            file.unwrap().metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_changed_meanwhile_is_not_overwritten() {
    let lab = Lab::start(Options::default()).await;
    let ichor = Path::new(env!("CARGO_BIN_EXE_ichor")).display().to_string();
    let script = format!(
        "{ichor} patch mc -n {} -p 'machine: {{nodeLabels: {{other: hand}}}}' >&2\nchange 's/cluster-1/mine/' \"$1\"",
        lab.nodes[0]
    );
    let ran = edit(&lab, &script, &[]);
    refused(&ran, 5, &["changed meanwhile", "the text is kept in"]);
    assert!(
        active(&lab, 0).contains("other: hand") && !active(&lab, 0).contains("clusterName: mine")
    );
    assert!(kept(&lab)[0].contains("clusterName: mine"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_what_editing_would_change() {
    let lab = Lab::start(Options::default()).await;
    let ran = edit(&lab, "change 's/cluster-1/edited/' \"$1\"", &["--dry-run"]);
    done(&ran);
    assert!(ran.stdout.contains("+    clusterName: edited"), "{ran:?}");
    assert_eq!(lab.changes(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mode_that_the_node_does_not_have_is_refused_before_anything_is_edited() {
    let lab = Lab::start(Options {
        talos_version: TalosVersion::V1_14,
        ..Options::default()
    })
    .await;
    let ran = edit(&lab, "touch opened", &["--mode", "reboot"]);
    refused(&ran, 2, &["has no mode reboot", "use --mode auto"]);
    assert!(!lab.home.path().join("opened").exists());
    assert_eq!(kept(&lab), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_editor_ends_the_run_and_later_nodes_are_not_edited() {
    let lab = Lab::start(Options::default()).await;
    let nodes = lab.nodes.join(",");
    let script = "echo once >>opened; kill -INT $$";
    let ran = edit(&lab, script, &["-n", &nodes]);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let opened = std::fs::read_to_string(lab.home.path().join("opened")).unwrap();
    assert_eq!(opened, "once\n");
    for words in ["the text is kept in", "not started", "to go on"] {
        assert!(ran.stderr.contains(words), "{words:?} in {ran:?}");
    }
    assert_eq!(lab.changes(), Vec::<String>::new());
}
