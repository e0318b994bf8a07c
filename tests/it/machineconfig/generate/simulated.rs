//! Generated configurations that start a simulated cluster.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::read;
use crate::cli::program::{Home, Ran};

/// A simulated cluster of its own process.
struct Simulated {
    child: Child,
    started: Value,
}

impl Simulated {
    fn start(home: &Home, args: &[&str]) -> Self {
        let args = [&["sim", "up", "-o", "json", "--dir", "lab"], args].concat();
        let mut child = home.command(&args).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let started = serde_json::from_str(&line).unwrap();
        Self { child, started }
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-INT", &id]).status();
        let _ = self.child.wait();
    }
}

fn generate(home: &Home, version: &str, folder: &str) {
    let args = [
        "gen",
        "config",
        "lab",
        "https://10.5.0.2:6443",
        "--talos-version",
        version,
        "-o",
        folder,
        "--additional-sans",
        "lab.example.org",
    ];
    let ran = home.run(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_cluster_starts_from_what_was_generated() {
    for (version, tag, kubernetes) in [
        ("1.11", "v1.11.5", "v1.34.1"),
        ("1.13", "v1.13.9", "v1.36.3"),
        ("1.14", "v1.14.1", "v1.37.0"),
    ] {
        let home = Home::new();
        generate(&home, version, "configs");
        let cluster = Simulated::start(&home, &["--config-dir", "configs", "--controlplanes", "2"]);
        let started = &cluster.started;
        assert_eq!(started["name"], "lab");
        assert_eq!(
            (&started["talosVersion"], &started["kubernetesVersion"]),
            (&tag.into(), &kubernetes.into())
        );
        assert_eq!(started["endpoint"], "https://10.5.0.2:6443");
        let run = |args: &[&str]| {
            let mut command = home.command(args);
            let ran: Ran = command
                .env("TALOSCONFIG", "lab/talosconfig")
                .output()
                .unwrap()
                .into();
            assert_eq!(ran.code, Some(0), "{version} {args:?}: {ran:?}");
            ran
        };
        let versions = run(&["version", "-o", "json"]).json();
        assert_eq!(versions["nodes"].as_array().unwrap().len(), 3);
        assert_eq!(versions["nodes"][2]["data"]["tag"], tag);
        // The nodes run what was generated, to the letter.
        let node = started["nodes"][0]["node"].as_str().unwrap();
        let configs = run(&["get", "mc", "-n", node, "-o", "json"]).stdout;
        let mark = "exclude-from-external-load-balancers";
        assert!(configs.contains(mark), "{version}");
        // The generated talosconfig works as it is, once told where to go.
        let mut command = home.command(&["version", "-e", node, "-n", node, "-o", "json"]);
        let ran: Ran = command
            .env("TALOSCONFIG", "configs/talosconfig")
            .output()
            .unwrap()
            .into();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let names = run(&["get", "certsan", "-n", node, "-o", "json"]).stdout;
        assert!(names.contains("lab.example.org"), "{names}");
        assert!(read(&home, "lab/kubeconfig").contains("10.5.0.2:6443"));
    }
}

#[test]
fn a_cluster_behaves_as_the_tag_of_the_installer_says_whatever_its_digest() {
    let home = Home::new();
    generate(&home, "1.11", "configs");
    let text = read(&home, "configs/controlplane.yaml");
    let pinned = text.replace("installer:v1.11.5", "installer:v1.11.5@sha256:00");
    assert_ne!(pinned, text);
    home.file("configs/controlplane.yaml", &pinned);
    let cluster = Simulated::start(&home, &["--config-dir", "configs"]);
    assert_eq!(cluster.started["talosVersion"], "v1.11.5");
}

#[test]
fn configurations_that_cannot_boot_are_refused() {
    let home = Home::new();
    generate(&home, "1.13", "one");
    generate(&home, "1.13", "two");
    let check = |args: &[&str], expected: &str| {
        let ran = home.run(&[&["sim", "up", "--config-dir"], args].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(expected), "{expected}: {ran:?}");
    };
    check(&["none"], "none/controlplane.yaml");
    check(&["one", "--name", "other"], "--name");
    check(&["one", "--talos-version", "1.11"], "grubUseUKICmdline");
    std::fs::copy(
        home.path().join("two/worker.yaml"),
        home.path().join("one/worker.yaml"),
    )
    .unwrap();
    check(&["one"], "it belongs to another cluster");
    std::fs::remove_file(home.path().join("one/worker.yaml")).unwrap();
    check(&["one"], "one/worker.yaml");
    std::fs::copy(
        home.path().join("two/talosconfig"),
        home.path().join("one/talosconfig"),
    )
    .unwrap();
    check(
        &["one", "--workers", "0"],
        "one/talosconfig belongs to another cluster",
    );
    let text =
        read(&home, "two/controlplane.yaml").replacen("type: controlplane", "type: worker", 1);
    home.file("two/controlplane.yaml", &text);
    check(
        &["two"],
        "the machine configuration of control planes cannot be used",
    );
}
