//! Prints how fast machine configurations are patched, validated and generated here and by the official Go library.
//!
//! Each side repeats the same work from text to text inside its own process on one core, in turns of a second. It needs
//! Go, and fails when this project is not as much faster as it promises.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use serde_json::{Value, json};
use talos_config::Schema;
use talos_config::generate::{
    Comments, Endpoint, Params, Release, Secrets, machine_config, talosconfig,
};
use talos_config::machine::MachineType;
use talos_config::patch::{self, Patch};
use talos_config::validate::{self, Mode};
use wait4::Wait4;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How many turns each side has, one second long.
const TURNS: usize = 5;

/// The release that both sides work for.
const VERSION: &str = "1.13";

fn main() -> ExitCode {
    match compare() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn compare() -> Result<bool> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    // The key that the authority of an admin's certificate needs is a real one there.
    let config = fs::read_to_string(data.join("genconfig/default/controlplane.yaml"))?;
    let secrets = fs::read_to_string(data.join("genconfig/secrets.yaml"))?;
    let merge = "machine:\n  kubelet:\n    image: ghcr.io/siderolabs/kubelet:v1.34.0\n  certSANs: [172.30.0.11]\n  sysctls: {vm.swappiness: \"10\"}\n";
    let mut peer = Peer::start()?;
    println!(
        "{:<34} {:>12} {:>12} {:>8} {:>8}",
        "per second, one core", "here", "official", "times", "promise"
    );
    let mut good = true;
    good &= row(
        "patches of an 11 KB config",
        2.0,
        &mut || patch_once(&config, merge),
        &mut peer,
        json!({"what": "patch", "config": config, "patches": [merge]}),
    )?;
    good &= row(
        "validations of an 11 KB config",
        3.0,
        &mut || validate_once(&config),
        &mut peer,
        json!({"what": "validate", "config": config, "mode": "metal"}),
    )?;
    good &= row(
        "clusters generated from secrets",
        1.0,
        &mut || generate_once(&secrets),
        &mut peer,
        json!({"what": "generate", "name": "c", "endpoint": "https://10.5.10.2:6443", "secrets": secrets,
            "talosVersion": "v1.13", "kubernetesVersion": "1.36.3", "installDisk": "/dev/sda"}),
    )?;
    memory(&config)?;
    Ok(good)
}

/// Lets both sides work in turns, and prints the best turn of each.
fn row(
    name: &str,
    promise: f64,
    ours: &mut dyn FnMut() -> Result<()>,
    peer: &mut Peer,
    mut question: Value,
) -> Result<bool> {
    question["op"] = json!("bench");
    question["seconds"] = json!(1.0);
    let (mut here, mut official) = (0.0_f64, 0.0_f64);
    for _ in 0..TURNS {
        let start = Instant::now();
        let mut count = 0_u32;
        while start.elapsed() < Duration::from_secs(1) {
            ours()?;
            count += 1;
        }
        here = here.max(f64::from(count) / start.elapsed().as_secs_f64());
        let answer = peer.ask(&question)?;
        let field = |name: &str| answer[name].as_f64().unwrap_or_default();
        official = official.max(field("count") / field("seconds"));
    }
    let times = here / official;
    // A busy machine takes its share from either side: only what is far from the promise fails.
    let fails = times < promise * 0.8;
    let verdict = match (fails, times < promise) {
        (true, _) => "  FAILED",
        (false, true) => "  missed",
        (false, false) => "",
    };
    println!("{name:<34} {here:>12.0} {official:>12.0} {times:>8.1} {promise:>8.1}{verdict}");
    Ok(!fails)
}

fn patch_once(config: &str, text: &str) -> Result<()> {
    let patch = Patch::parse(text)?;
    let patched = patch::apply(config, &[patch], Schema::for_talos(VERSION))?;
    black_box(&patched.text);
    Ok(())
}

fn validate_once(config: &str) -> Result<()> {
    let options = validate::Options {
        mode: Mode::Metal,
        strict: false,
        talos_version: Some(VERSION.to_owned()),
    };
    black_box(validate::validate(config, &options)?);
    Ok(())
}

fn generate_once(text: &str) -> Result<()> {
    let secrets = Secrets::read(text)?;
    let endpoint = Endpoint::parse("https://10.5.10.2:6443")?;
    let mut params = Params::new("c", endpoint, Release::parse(VERSION)?);
    params.comments = Comments {
        docs: false,
        examples: false,
    };
    for kind in [MachineType::ControlPlane, MachineType::Worker] {
        black_box(machine_config(kind, &params, &secrets)?);
    }
    black_box(talosconfig(&params, &secrets, jiff::Timestamp::now())?);
    Ok(())
}

/// Prints the largest memory of the program while it patches, and validates, a configuration of 1 MB.
fn memory(config: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("large.yaml");
    let sysctls: String = (0..14_000)
        .map(|number| {
            format!(
                "        net.core.setting{number:05}.x: \"some value of a setting {number:05}\"\n"
            )
        })
        .collect();
    let text = config.replacen(
        "    kubelet:\n",
        &format!("    sysctls:\n{sysctls}    kubelet:\n"),
        1,
    );
    fs::write(&file, &text)?;
    let name = file.display().to_string();
    for (verb, args) in [
        (
            "patch",
            vec![
                "machineconfig",
                "patch",
                &name,
                "--patch",
                "machine: {type: controlplane}",
            ],
        ),
        (
            "validate",
            vec!["validate", "--mode", "metal", "--config", &name],
        ),
    ] {
        let output = fs::File::create(folder.path().join("output"))?;
        let start = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_ichor"))
            .args(args)
            .stdout(output)
            .spawn()?;
        let usage = child.wait4()?;
        if !usage.status.success() {
            return Err(format!("ichor {verb} ended with {}", usage.status).into());
        }
        println!(
            "{verb} of a config of {:.1} MB: {:.1} MB of memory, {:.0} ms with start-up",
            text.len() as f64 / 1e6,
            usage.rusage.maxrss as f64 / 1e6,
            start.elapsed().as_secs_f64() * 1e3
        );
    }
    Ok(())
}

/// The program on the official library.
struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start() -> Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/config");
        let program = env::temp_dir().join(format!("ichor-official-{}", std::process::id()));
        let status = Command::new("go")
            .arg("-C")
            .arg(folder)
            .args([
                "build",
                &format!("-modfile=go-{VERSION}.mod"),
                &format!("-tags=talos{VERSION}"),
                "-o",
            ])
            .arg(&program)
            .arg(".")
            .status()
            .map_err(|error| format!("this benchmark needs Go: {error}"))?;
        if !status.success() {
            return Err("the program on the official library does not build".into());
        }
        let mut child = Command::new(&program)
            .env("GOMAXPROCS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        fs::remove_file(&program)?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self {
            child,
            input,
            output,
        })
    }

    fn ask(&mut self, question: &Value) -> Result<Value> {
        writeln!(self.input, "{question}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line)?;
        match answer["ok"].as_bool() {
            Some(true) => Ok(answer),
            _ => Err(format!("the official library refuses: {answer}").into()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Nothing is left to do about a program that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
