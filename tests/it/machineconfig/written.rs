//! Where patched and migrated machine configs are written.

use std::os::unix::fs::PermissionsExt as _;

use crate::cli::program::{Home, Ran};

const CONFIG: &str = "machine:\n    type: worker\n    sysctls: {a.b: c}\n    token: x\n";
const PLAIN: &str = "machine:\n    type: worker\n    sysctls: {a.b: c}\n";

/// The commands that write one, without the file they read.
const COMMANDS: [&[&str]; 2] = [
    &[
        "machineconfig",
        "patch",
        "-p",
        "machine: {nodeLabels: {a: b}}",
    ],
    &["machineconfig", "migrate", "--to", "1.14"],
];

fn run(home: &Home, command: &[&str], args: &[&str]) -> Ran {
    home.run(&[command, args].concat())
}

fn file_with_mode(home: &Home, mode: u32) -> String {
    let path = home.file("there.yaml", "old\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn mode(path: &str) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_file_that_gets_secrets_is_for_its_owner_only() {
    for command in COMMANDS {
        let home = Home::new();
        let file = home.file("config.yaml", CONFIG);
        let there = file_with_mode(&home, 0o644);
        let ran = run(&home, command, &[&file, "-o", &there]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(mode(&there), 0o600, "{command:?}");
        let plain = home.file("plain.yaml", PLAIN);
        let there = file_with_mode(&home, 0o644);
        let ran = run(&home, command, &[&plain, "-o", &there]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(mode(&there), 0o644, "{command:?}");
    }
}

#[test]
fn a_dash_is_standard_output() {
    for command in COMMANDS {
        let home = Home::new();
        let file = home.file("config.yaml", CONFIG);
        let plain = run(&home, command, &[&file]);
        assert!(plain.stdout.contains("token: x"), "{plain:?}");
        let dash = run(&home, command, &[&file, "-o", "-"]);
        assert_eq!((dash.code, &dash.stdout), (Some(0), &plain.stdout));
        let json = run(&home, command, &[&file, "-o", "-", "--format", "json"]);
        assert_eq!(json.json()["config"], plain.stdout);
        assert!(!home.path().join("-").exists());
    }
}

#[test]
fn a_script_reads_json_when_the_text_goes_to_a_file() {
    for (command, list) in COMMANDS.into_iter().zip(["warnings", "moves"]) {
        let home = Home::new();
        let file = home.file("config.yaml", CONFIG);
        let out = home.path().join("out.yaml");
        let out = out.to_str().unwrap();
        let ran = run(&home, command, &[&file, "-o", out, "--format", "json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let document = ran.json();
        assert!(document[list].is_array(), "{document}");
        assert_eq!(document.get("config"), None);
        assert_eq!(
            std::fs::read_to_string(out).unwrap(),
            run(&home, command, &[&file]).stdout
        );
    }
}
