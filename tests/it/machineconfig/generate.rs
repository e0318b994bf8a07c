//! Generated secrets, configurations, keys and certificates.

mod certificates;
mod outputs;
mod secrets;
mod simulated;
mod versions;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use talos_config::machine::MachineConfig;
use talos_config::yaml;

use crate::cli::program::{Home, Ran};

const BUNDLE: &str = include_str!("../../data/genconfig/secrets.yaml");
const CONFIG: [&str; 4] = ["gen", "config", "cluster-1", "https://10.5.10.2:6443"];

/// A home folder with a secrets bundle in it.
fn home() -> Home {
    let home = Home::new();
    home.file("secrets.yaml", BUNDLE);
    home
}

/// Runs `gen config` with the bundle, at a fixed time.
fn config(home: &Home, args: &[&str]) -> Ran {
    let args = [&CONFIG[..], &["--with-secrets", "secrets.yaml"], args].concat();
    let mut command = home.command(&args);
    command.env("SOURCE_DATE_EPOCH", "1795953600");
    command.output().unwrap().into()
}

fn read(home: &Home, path: &str) -> String {
    std::fs::read_to_string(home.path().join(path)).unwrap()
}

/// Tells what is in a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_same_secrets_and_time_give_the_same_files() {
    let home = home();
    for folder in ["one", "two"] {
        let ran = config(&home, &["-o", folder]);
        assert_eq!(
            (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
            (
                Some(0),
                "",
                format!("Created {folder}/controlplane.yaml\nCreated {folder}/worker.yaml\nCreated {folder}/talosconfig\n").as_str()
            )
        );
    }
    let names = ["controlplane.yaml", "talosconfig", "worker.yaml"];
    assert_eq!(files(&home.path().join("one")), names);
    for name in names {
        let (one, two) = (format!("one/{name}"), format!("two/{name}"));
        assert_eq!(read(&home, &one), read(&home, &two));
        let mode = std::fs::metadata(home.path().join(one))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn both_commands_do_the_same() {
    let home = home();
    config(&home, &["-o", "one"]);
    let args = [
        "mc",
        "gen",
        "cluster-1",
        "https://10.5.10.2:6443",
        "--with-secrets",
        "secrets.yaml",
        "-o",
        "two",
    ];
    assert_eq!(home.run(&args).code, Some(0));
    for name in ["controlplane.yaml", "worker.yaml"] {
        assert_eq!(
            read(&home, &format!("one/{name}")),
            read(&home, &format!("two/{name}"))
        );
    }
    let again = home.run(&args);
    assert_eq!(again.code, Some(5), "{again:?}");
    assert_eq!(home.run(&[&args[..], &["--force"]].concat()).code, Some(0));
}

#[test]
fn nothing_is_written_where_a_file_exists() {
    let home = home();
    home.file("out/worker.yaml", "mine\n");
    home.file("out/talosconfig", "mine\n");
    let ran = config(&home, &["-o", "out"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "error: files \"out/worker.yaml\", \"out/talosconfig\" already exist\n  hint: use --force to overwrite; nothing was written\n"
    );
    assert_eq!(
        files(&home.path().join("out")),
        ["talosconfig", "worker.yaml"]
    );
    assert_eq!(read(&home, "out/worker.yaml"), "mine\n");
    let forced = home.run(&[&["gen", "-f"], &CONFIG[1..], &["-o", "out"]].concat());
    assert_eq!(forced.code, Some(0), "{forced:?}");
    assert!(
        forced
            .stderr
            .starts_with("Making authorities, keys and tokens\n"),
        "{forced:?}"
    );
    assert!(read(&home, "out/worker.yaml").contains("type: worker"));
}

#[test]
fn of_three_files_none_is_written_if_one_cannot_be() {
    let home = home();
    std::fs::create_dir_all(home.path().join("out/talosconfig")).unwrap();
    let ran = config(&home, &["-o", "out", "--force"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "error: \"out/talosconfig\" is a folder, not a file\n  \
         hint: choose another name for the file; nothing was written\n"
    );
    assert_eq!(files(&home.path().join("out")), ["talosconfig"]);
    home.file("file", "");
    let ran = config(&home, &["-o", "file/below"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("file/below/controlplane.yaml"),
        "{ran:?}"
    );
}

#[test]
fn one_type_goes_to_a_file_or_to_standard_output() {
    let home = home();
    let to_file = config(&home, &["-t", "worker", "-o", "deep/w.yaml"]);
    assert_eq!(to_file.stderr, "Created deep/w.yaml\n");
    let to_stdout = config(&home, &["--output-types", "worker", "-o", "-"]);
    assert_eq!((to_stdout.code, to_stdout.stderr.as_str()), (Some(0), ""));
    assert_eq!(to_stdout.stdout, read(&home, "deep/w.yaml"));
    let folder = config(&home, &["-t", "worker", "--output-dir", "dir"]);
    assert_eq!(folder.stderr, "Created dir/worker.yaml\n");
    let json = config(&home, &["-t", "worker", "-o", "-", "--format", "json"]).json();
    assert_eq!(json["files"][0]["kind"], "worker");
    assert_eq!(json["files"][0]["content"], to_stdout.stdout);
    let json = config(&home, &["-o", "j", "--format", "json"]).json();
    assert_eq!(json["files"].as_array().unwrap().len(), 3);
    assert_eq!(json["files"][2]["path"], "j/talosconfig");
}

#[test]
fn wrong_words_are_refused_before_anything_is_made() {
    let home = home();
    let check = |args: &[&str], expected: &str| {
        let ran = config(&home, args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(expected), "{expected}: {ran:?}");
        assert_eq!(files(home.path()), ["secrets.yaml"]);
    };
    check(&["-o", "-"], "standard output takes one type only");
    check(&["-t", "init"], "nothing is called \"init\"");
    check(
        &["--version", "v1beta1"],
        "--version \"v1beta1\": no machine config has this form",
    );
    check(
        &["--talos-version", "latest"],
        "\"latest\" is not a Talos version",
    );
    check(
        &["--registry-mirror", "docker.io"],
        "the registry mirror \"docker.io\" must have the form host=URL",
    );
    check(
        &["--kubernetes-version", "1.36"],
        "the Kubernetes version \"1.36\" is not a version",
    );
    check(
        &["--additional-sans", "a b,-"],
        "the additional name \"a b\" is neither a DNS name nor an IP address",
    );
    check(&["--config-patch", "@none.yaml"], "none.yaml");
    check(&["--config-patch", "machine: {typo: 1}"], "machine.typo");
    check(
        &[
            "--config-patch-worker",
            "[{\"op\": \"remove\", \"path\": \"/none\"}]",
        ],
        "the worker config cannot be patched by --config-patch-worker",
    );
    check(&["-o", "a", "--output-dir", "b"], "--output-dir");
    check(&["--with-secrets", "none.yaml"], "none.yaml");
    for (endpoint, meant) in [
        ("10.5.0.2", "https://10.5.0.2:6443"),
        ("fd00::1", "https://[fd00::1]:6443"),
        ("http://cp", "https://cp:6443"),
    ] {
        let ran = home.run(&["gen", "config", "c", endpoint]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(
            ran.stderr.ends_with(&format!("  hint: try: {meant:?}\n")),
            "{ran:?}"
        );
    }
    let mut command = home.command(&CONFIG);
    let ran: Ran = command
        .env("SOURCE_DATE_EPOCH", "yesterday")
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("SOURCE_DATE_EPOCH"), "{ran:?}");
}

#[test]
fn passwords_of_urls_are_not_repeated() {
    let home = home();
    let mirror = ["--registry-mirror", "docker.io=ftp://user:pa55word@h"];
    for args in [
        &["gen", "config", "c", "https://admin:pa55word@cp:6443"][..],
        &["gen", "config", "c", "http://admin:pa55word@cp:6443"],
        &[&CONFIG[..], &mirror].concat(),
        &[&CONFIG[..], &["--registry-mirror", "ftp://user:pa55word@h"]].concat(),
    ] {
        let ran = home.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(
            !ran.stderr.contains("pa55word") && !ran.stderr.contains("admin"),
            "{ran:?}"
        );
    }
}

#[test]
fn flags_reach_the_configurations() {
    let home = home();
    let flags = "--talos-version v1.13.2 --install-disk /dev/nvme0n1 --additional-sans a.example,10.0.0.9 \
                 --dns-domain example.internal --kubernetes-version v1.35.1 --with-cluster-discovery=false \
                 --registry-mirror docker.io=http://m:5000,ghcr.io=http://n --registry-mirror docker.io=http://o \
                 --with-kubespan --with-docs=false --with-examples=false -o out";
    let ran = config(&home, &flags.split_whitespace().collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = read(&home, "out/controlplane.yaml");
    assert!(!text.contains('#'), "{text}");
    let config = MachineConfig::parse(&text).unwrap();
    let main = config.main().unwrap();
    assert_eq!(main["machine"]["install"]["disk"], "/dev/nvme0n1");
    assert_eq!(
        main["machine"]["install"]["image"],
        "ghcr.io/siderolabs/installer:v1.13.2"
    );
    assert_eq!(config.cert_sans(), ["a.example", "10.0.0.9"]);
    assert_eq!(config.api_server_cert_sans(), ["a.example", "10.0.0.9"]);
    assert_eq!(main["cluster"]["network"]["dnsDomain"], "example.internal");
    assert_eq!(main["cluster"]["discovery"]["enabled"], false);
    assert_eq!(
        main["machine"]["kubelet"]["image"],
        "ghcr.io/siderolabs/kubelet:v1.35.1"
    );
    let mirror = config.document("RegistryMirrorConfig").unwrap();
    assert_eq!(
        mirror["endpoints"],
        serde_json::json!([{"url": "http://m:5000"}, {"url": "http://o"}])
    );
    assert_eq!(config.document("KubeSpanConfig").unwrap()["enabled"], true);
}

#[test]
fn the_image_and_kubernetes_follow_the_release_and_the_environment() {
    let home = home();
    let worker = |args: &[&str], tag: Option<&str>| {
        let args = [
            &CONFIG[..],
            &["--with-secrets", "secrets.yaml", "-t", "worker", "-o", "-"],
            args,
        ]
        .concat();
        let mut command = home.command(&args);
        command.envs(tag.map(|tag| ("TAG", tag)));
        let ran: Ran = command.output().unwrap().into();
        MachineConfig::parse(&ran.stdout).unwrap()
    };
    let image = |config: &MachineConfig| match config.document("UnattendedInstallConfig") {
        Some(document) => document["installer"]["image"].clone(),
        None => config.main().unwrap()["machine"]["install"]["image"].clone(),
    };
    assert_eq!(
        image(&worker(&["--talos-version", "1.11"], None)),
        "ghcr.io/siderolabs/installer:v1.11.5"
    );
    assert_eq!(
        image(&worker(&["--talos-version", "1.13"], Some("v9"))),
        "ghcr.io/siderolabs/installer:v9"
    );
    let newest = worker(&[], Some("v1.14.0"));
    let image = image(&newest);
    assert!(
        image
            .as_str()
            .unwrap()
            .starts_with("factory.talos.dev/metal-installer/")
            && image.as_str().unwrap().ends_with(":v1.14.0")
    );
    let kubelet = |config: &MachineConfig| {
        config
            .image(talos_config::machine::Component::Kubelet)
            .map(str::to_owned)
    };
    assert_eq!(
        kubelet(&newest).as_deref(),
        Some("ghcr.io/siderolabs/kubelet:v1.37.0")
    );
    assert_eq!(
        kubelet(&worker(&["--talos-version", "1.11"], None)).as_deref(),
        Some("ghcr.io/siderolabs/kubelet:v1.34.1")
    );
    assert_eq!(kubelet(&worker(&["--kubernetes-version", ""], None)), None);
    // A release that is not known yet is like the newest one.
    let newer = worker(&["--talos-version", "v1.15.0"], None);
    assert!(newer.document("KubeClusterConfig").is_some());
}

#[test]
fn patches_apply_to_the_configurations_they_are_for() {
    let home = home();
    home.file("both.yaml", "machine:\n  sysctls: {a: b}\n");
    let args = [
        "--config-patch",
        "@both.yaml",
        "--config-patch-control-plane",
        "[{\"op\":\"add\",\"path\":\"/machine/certSANs/-\",\"value\":\"10.0.0.9\"}]",
        "--config-patch-worker",
        "machine: {nodeLabels: {role: worker}}",
        "--talos-version",
        "v1.13",
    ];
    let ran = config(&home, &args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let [control_plane, worker] = ["controlplane.yaml", "worker.yaml"]
        .map(|name| yaml::read_documents(&read(&home, name)).unwrap()[0]["machine"].clone());
    assert_eq!(
        (&control_plane["sysctls"]["a"], &worker["sysctls"]["a"]),
        (&"b".into(), &"b".into())
    );
    assert_eq!(control_plane["certSANs"], serde_json::json!(["10.0.0.9"]));
    assert_eq!(worker["certSANs"], serde_json::json!([]));
    assert_eq!(worker["nodeLabels"]["role"], "worker");
    assert!(control_plane["nodeLabels"].get("role").is_none());
    // Comments survive.
    assert!(read(&home, "worker.yaml").contains("# The machine's part in the cluster"));
}

#[test]
fn bad_secrets_are_named_with_file_and_line() {
    let home = home();
    let damaged = BUNDLE.replacen("    token:", "    tokem:", 1).replacen(
        "    secret: NP",
        "    secret: ''\n    x: NP",
        1,
    );
    home.file("bad.yaml", &damaged);
    let ran = home.run(&[&CONFIG[..], &["--with-secrets", "bad.yaml"]].concat());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "error: bad.yaml cannot be used as secrets\n  \
         caused by: the secrets bundle has not all the secrets of a cluster\n  \
         caused by: cluster.secret (line 3) is required\n  \
         caused by: trustdinfo.token (line 8) is required\n"
    );
    assert_eq!(files(home.path()), ["bad.yaml", "secrets.yaml"]);
}
