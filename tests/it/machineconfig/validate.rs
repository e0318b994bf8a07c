//! What Talos refuses, and what it should have.

use serde_json::{Value, json};

use crate::cli::program::{Home, Ran};

const CONFIG: &str = include_str!("../../data/genconfig/default/controlplane.yaml");

fn validate(config: &str, args: &[&str]) -> Ran {
    let home = Home::new();
    home.file("cp.yaml", config);
    home.run(&[&["validate", "-c", "cp.yaml"], args].concat())
}

/// Returns the configuration with one text in the place of another.
fn changed(from: &str, to: &str) -> String {
    assert!(CONFIG.contains(from), "{from}");
    CONFIG.replacen(from, to, 1)
}

/// Returns the line a text stands on.
fn line(config: &str, text: &str) -> usize {
    config.lines().position(|line| line.contains(text)).unwrap() + 1
}

#[test]
fn a_config_that_talos_takes_is_valid() {
    for mode in ["metal", "cloud", "container", "metal-agent"] {
        let ran = validate(CONFIG, &["--mode", mode, "--strict"]);
        let said = format!("cp.yaml is valid for {mode} mode\n");
        assert_eq!(
            (ran.code, ran.stdout, ran.stderr),
            (Some(0), said, String::new())
        );
    }
}

#[test]
fn what_makes_it_invalid_is_printed_with_file_and_line() {
    let config = changed("https://10.5.10.2:6443", "10.5.10.2:6443").replacen(
        "wipe: false",
        "wipe: maybe",
        1,
    ) + "---\napiVersion: v1alpha1\nkind: VLANConfig\nname: v\nvlanID: 5000\nparent: eth0\n";
    let ran = validate(&config, &["-m", "metal"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let starts = [
        format!(
            "error: cp.yaml:{}: machine.install.wipe: ",
            line(&config, "wipe: maybe")
        ),
        format!(
            "error: cp.yaml:{}: cluster.controlPlane.endpoint: ",
            line(&config, "endpoint:")
        ),
        format!(
            "error: cp.yaml:{}: VLANConfig/v: vlanID: ",
            line(&config, "vlanID:")
        ),
    ];
    let printed: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(printed.len(), starts.len(), "{ran:?}");
    for (printed, start) in printed.iter().zip(&starts) {
        assert!(printed.starts_with(start.as_str()), "{printed}\n{start}");
    }
    assert_eq!(
        ran.stderr,
        "cp.yaml is not valid for metal mode: 3 errors\n"
    );
}

#[test]
fn warnings_go_to_stderr_and_count_with_strict() {
    let config = changed("- 10.244.0.0/16", "- 10.96.0.0/16");
    let ran = validate(&config, &["-m", "metal"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "cp.yaml is valid for metal mode\n")
    );
    let at = line(&config, "- 10.96.0.0/12");
    assert_eq!(
        ran.stderr,
        format!(
            "warning: cp.yaml:{at}: cluster.network.serviceSubnets[0]: overlaps the pod subnet 10.96.0.0/16\n"
        )
    );
    let ran = validate(&config, &["-m", "metal", "--strict"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stdout.starts_with(&format!("error: cp.yaml:{at}: ")));
    assert_eq!(
        validate(&config, &["-m", "metal", "--strict=false"]).code,
        Some(0)
    );
}

#[test]
fn old_sections_are_noted_in_one_line() {
    let ran = validate(
        CONFIG,
        &["-m", "metal", "--talos-version", "1.14", "--strict"],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1);
    assert!(
        ran.stderr
            .starts_with("note: Talos 1.14 has documents for machine.kubelet, machine.install, ")
    );
}

#[test]
fn json_has_the_same() {
    let config = changed("wipe: false", "wipe: false\n        erase: true");
    let ran = validate(&config, &["-m", "metal", "-o", "json"]);
    assert_eq!(ran.code, Some(3));
    let report = ran.json();
    assert_eq!(
        report,
        json!({
            "file": "cp.yaml",
            "mode": "metal",
            "talosVersion": "1.13.9",
            "valid": false,
            "findings": [{
                "severity": "error",
                "code": "unknown-field",
                "document": "",
                "path": "machine.install.erase",
                "line": line(&config, "erase: true"),
                "message": "Talos 1.13.9 has no field `erase` here",
            }],
        })
    );
    let ran = validate(&config, &["-m", "metal", "-o", "yaml"]);
    assert!(ran.stdout.starts_with("file: cp.yaml\n"), "{ran:?}");
    let valid = validate(CONFIG, &["-m", "cloud", "-o", "json"]).json();
    assert_eq!(
        (&valid["valid"], &valid["findings"]),
        (&json!(true), &json!([]))
    );
}

#[test]
fn standard_input_is_read_and_what_is_no_config_is_an_error() {
    let home = Home::new();
    let ran = home.run_with_input(&["validate", "--config", "-", "--mode", "cloud"], CONFIG);
    assert_eq!(ran.stdout, "- is valid for cloud mode\n", "{ran:?}");

    let unreadable = validate("a: [\n", &["-m", "metal", "-o", "json"]);
    assert_eq!(unreadable.code, Some(2));
    assert_eq!(unreadable.error()["code"], "invalid");
    let empty = validate("# nothing\n", &["-m", "metal"]);
    assert_eq!(empty.code, Some(3), "{empty:?}");
    assert_eq!(
        home.run(&["validate", "-c", "missing.yaml", "-m", "metal"])
            .code,
        Some(2)
    );
    for wrong in [
        &["-m", "bare"][..],
        &[],
        &["-m", "metal", "--talos-version", "new"],
    ] {
        assert_eq!(validate(CONFIG, wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn a_version_that_is_none_is_refused_by_every_command_that_takes_one() {
    let home = Home::new();
    home.file("cp.yaml", CONFIG);
    let commands: [&[&str]; 6] = [
        &["validate", "-c", "cp.yaml", "-m", "metal"],
        &["machineconfig", "patch", "cp.yaml"],
        &["machineconfig", "diff", "cp.yaml", "cp.yaml"],
        &["machineconfig", "gen", "a", "https://10.5.0.2:6443"],
        &["gen", "config", "a", "https://10.5.0.2:6443"],
        &["gen", "secrets"],
    ];
    for command in commands {
        for wrong in ["nonsense", "1.13.banana", "v1.13.9+abc"] {
            let ran = home.run(&[command, &["--talos-version", wrong]].concat());
            assert_eq!(ran.code, Some(2), "{ran:?}");
            for part in ["--talos-version", wrong, "is not a Talos version"] {
                assert!(ran.stderr.contains(part), "{part}: {ran:?}");
            }
        }
    }
    for command in &commands[..3] {
        for right in ["1.13", "v1.13", "v1.13.9", "v1.13.0-rc.1"] {
            let ran = home.run(&[command, &["--talos-version", right][..]].concat());
            assert_eq!(ran.code, Some(0), "{ran:?}");
        }
    }
}

#[test]
fn secrets_stay_out_of_what_is_printed() {
    let token = CONFIG
        .lines()
        .find_map(|line| line.strip_prefix("    token: "))
        .unwrap();
    let config = changed("certSANs: []", &format!("certSANs: []\n    {token}: x"));
    for format in ["table", "json", "yaml"] {
        let ran = validate(&config, &["-m", "metal", "-o", format]);
        assert_eq!(ran.code, Some(3));
        assert!(!(ran.stdout + &ran.stderr).contains(token), "{format}");
    }
}

#[test]
fn the_schema_describes_the_document() {
    let schema: Value = Home::new().run(&["schema", "validate"]).json();
    let fields = schema["properties"].as_object().unwrap();
    let names: Vec<&str> = fields.keys().map(String::as_str).collect();
    assert_eq!(names, ["file", "mode", "talosVersion", "valid", "findings"]);
}
