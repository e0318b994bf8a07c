//! Every flag of talosctl for the verbs that exist here.

use super::program::Home;

/// The verbs of talosctl that exist here.
const VERBS: &[&str] = &[
    "apply-config",
    "bootstrap",
    "completion bash",
    "completion fish",
    "completion powershell",
    "completion zsh",
    "config add",
    "config context",
    "config contexts",
    "config endpoint",
    "config info",
    "config merge",
    "config node",
    "config remove",
    "edit",
    "events",
    "gen",
    "gen ca",
    "gen config",
    "gen crt",
    "gen csr",
    "gen key",
    "gen keypair",
    "gen secrets",
    "get",
    "kubeconfig",
    "logs",
    "machineconfig patch",
    "patch",
    "read",
    "reboot",
    "rotate-ca",
    "service",
    "upgrade-k8s",
    "validate",
    "version",
];

/// Other names of verbs.
const ALIASES: &[&str] = &[
    "apply",
    "config endpoints",
    "config get-contexts",
    "config nodes",
    "config use-context",
    "g",
    "mc patch",
    "services",
];

/// One flag of talosctl.
struct Flag<'a> {
    command: &'a str,
    name: &'a str,
    short: &'a str,
    kind: &'a str,
    default: &'a str,
}

fn flags(table: &str) -> Vec<Flag<'_>> {
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [command, name, short, kind, default] = fields[..] else {
                panic!("{line}");
            };
            let command = command.strip_prefix("talosctl ")?;
            (!name.is_empty()).then_some(Flag {
                command,
                name,
                short,
                kind,
                default,
            })
        })
        .collect()
}

/// Words that set the flag in every way talosctl takes.
fn spellings(flag: &Flag<'_>) -> Vec<Vec<String>> {
    let long = format!("--{}", flag.name);
    let short = format!("-{}", flag.short);
    let mut spellings = Vec::new();
    if flag.kind == "bool" {
        spellings.push(vec![long.clone()]);
        spellings.push(vec![format!("{long}=false")]);
        spellings.push(vec![format!("{long}=true")]);
        if !flag.short.is_empty() {
            spellings.push(vec![short]);
        }
        return spellings;
    }
    for value in values(flag) {
        spellings.push(vec![long.clone(), value.clone()]);
        spellings.push(vec![format!("{long}={value}")]);
        if !flag.short.is_empty() {
            spellings.push(vec![short.clone(), value.clone()]);
            spellings.push(vec![format!("{short}{value}")]);
        }
    }
    spellings
}

fn values(flag: &Flag<'_>) -> Vec<String> {
    let default = flag.default.trim_matches('"').to_owned();
    match flag.kind {
        // A machine config is in no other.
        _ if flag.name == "namespace" => vec!["config".to_owned()],
        _ if flag.name == "talos-version" => vec!["v1.13".to_owned()],
        _ if flag.command == "validate" && flag.name == "mode" => {
            ["metal", "cloud", "container"].map(str::to_owned).to_vec()
        }
        // What the table calls the default of these is prose of the help text.
        _ if flag.default.starts_with("is ") => sample(flag.kind),
        _ if flag.kind.contains(", ") => flag.kind.split(", ").map(str::to_owned).collect(),
        _ if flag.name == "output" && default.is_empty() => vec!["out.yaml".to_owned()],
        kind if default.is_empty() || default.starts_with('[') => sample(kind),
        _ => vec![default],
    }
}

fn sample(kind: &str) -> Vec<String> {
    let value = match kind {
        "duration" => "1m30s",
        "int32" | "int" | "uint" => "5",
        "strings" => "a,b",
        _ => "x",
    };
    vec![value.to_owned()]
}

#[test]
fn every_flag_of_talosctl_is_taken() {
    let table = include_str!("../../data/talosctl-cli.tsv");
    let home = Home::new();
    let mut refused = Vec::new();
    let mut taken = 0;
    for flag in flags(table) {
        if !VERBS.contains(&flag.command) {
            continue;
        }
        let spellings = spellings(&flag);
        let mut args: Vec<&str> = flag.command.split(' ').collect();
        args.extend(spellings.iter().flatten().map(String::as_str));
        // Words before --help are parsed and judged, and nothing is run.
        args.push("--help");
        let ran = home.run(&args);
        if ran.code == Some(0) {
            taken += spellings.len();
        } else {
            let reason = ran.stderr.lines().next().unwrap_or_default().to_owned();
            refused.push(format!("{}: {reason}", args.join(" ")));
        }
    }
    assert!(refused.is_empty(), "refused:\n{}", refused.join("\n"));
    assert!(taken > 600, "only {taken} spellings were tried");
}

#[test]
fn every_verb_and_alias_has_help() {
    let home = Home::new();
    for verb in VERBS.iter().chain(ALIASES) {
        let mut args: Vec<&str> = verb.split(' ').collect();
        args.push("--help");
        let ran = home.run(&args);
        assert_eq!(ran.code, Some(0), "{verb}: {ran:?}");
        assert!(ran.stdout.contains("Usage: ichor"), "{verb}: {ran:?}");
    }
}

#[test]
fn the_environment_sets_flags() {
    let home = Home::new();
    let run = |value: &str| {
        let mut command = home.command(&["version"]);
        command
            .env("ICHOR_CLIENT", value)
            .env("ICHOR_OUTPUT", "json");
        super::program::Ran::from(command.output().unwrap())
    };
    let client = run("true").json();
    assert_eq!(client["client"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(run("perhaps").code, Some(2));
}
