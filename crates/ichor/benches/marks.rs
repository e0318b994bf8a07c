//! Prints the figures that this project promises, each beside its mark, and fails when one is worse than twice its mark.
//!
//! `cargo bench -p ichor` runs it; a word after `--` runs only the figures whose name contains it.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use talos_config::Schema;
use talos_config::patch::{self, Patch};
use wait4::Wait4;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ichor");

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Measures figures that belong together.
type Group = fn() -> Result<Vec<Figure>>;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let groups: [(&str, Group); 4] = [
        ("start-up", start_up),
        ("size", size),
        ("patch", patches),
        ("thousand nodes", thousand_nodes),
    ];
    let mut failed = false;
    println!("{:<46} {:>12} {:>12}", "figure", "measured", "mark");
    for (name, group) in groups {
        if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        match group() {
            Ok(figures) => {
                for figure in figures {
                    failed |= figure.print();
                }
            }
            Err(error) => {
                println!("{name}: {error}");
                failed = true;
            }
        }
    }
    ExitCode::from(u8::from(failed))
}

/// One measured number.
struct Figure {
    name: &'static str,
    unit: &'static str,
    measured: f64,
    mark: f64,
    /// Whether a larger number is the better one.
    more_is_better: bool,
}

impl Figure {
    fn at_most(name: &'static str, unit: &'static str, measured: f64, mark: f64) -> Self {
        Self {
            name,
            unit,
            measured,
            mark,
            more_is_better: false,
        }
    }

    /// Prints the figure and tells whether it is worse than twice its mark.
    fn print(&self) -> bool {
        let (missed, bad) = if self.more_is_better {
            (self.measured < self.mark, self.measured < self.mark / 2.0)
        } else {
            (self.measured > self.mark, self.measured > self.mark * 2.0)
        };
        let verdict = match (bad, missed) {
            (true, _) => "  FAILED: worse than twice its mark",
            (false, true) => "  missed",
            (false, false) => "",
        };
        println!(
            "{:<46} {:>12} {:>12}{verdict}",
            self.name,
            format!("{:.1} {}", self.measured, self.unit),
            format!("{:.0} {}", self.mark, self.unit),
        );
        bad
    }
}

/// What one run of the program took.
struct Run {
    time: Duration,
    /// Largest resident set, in bytes.
    memory: u64,
}

fn run(args: &[String], folder: &Path) -> Result<Run> {
    let output = fs::File::create(folder.join("output"))?;
    let errors = fs::File::create(folder.join("errors"))?;
    let start = Instant::now();
    let child = Command::new(PROGRAM)
        .args(args)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()?;
    let usage = child.wait4()?;
    let time = start.elapsed();
    if !usage.status.success() {
        let errors = fs::read_to_string(folder.join("errors"))?;
        let tail: Vec<&str> = errors.lines().rev().take(5).collect();
        return Err(format!("ichor ended with {}: {}", usage.status, tail.join(" | ")).into());
    }
    Ok(Run {
        time,
        memory: usage.rusage.maxrss,
    })
}

/// The median start-up of fifty runs, and the largest memory among them.
fn start_up() -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let args = ["version", "--client"].map(str::to_owned);
    let mut times = Vec::new();
    let mut memory = 0;
    for _ in 0..50 {
        let run = run(&args, folder.path())?;
        times.push(run.time);
        memory = memory.max(run.memory);
    }
    times.sort();
    Ok(vec![
        Figure::at_most(
            "ichor version --client: time (median of 50)",
            "ms",
            times[times.len() / 2].as_secs_f64() * 1e3,
            10.0,
        ),
        Figure::at_most(
            "ichor version --client: memory",
            "MB",
            megabytes(memory),
            12.0,
        ),
    ])
}

fn size() -> Result<Vec<Figure>> {
    let bytes = fs::metadata(PROGRAM)?.len();
    Ok(vec![Figure::at_most(
        "program size",
        "MB",
        megabytes(bytes),
        25.0,
    )])
}

/// Patches of an 11 KB configuration on one core, text to text: four images and a list, as an upgrade or a user would.
fn patches() -> Result<Vec<Figure>> {
    let config = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/config-11kb.yaml"
    ))?;
    let texts = [
        "machine:\n  kubelet:\n    image: ghcr.io/siderolabs/kubelet:v1.34.0\n",
        "machine:\n  certSANs: [172.30.0.11]\n",
        r#"[{"op":"add","path":"/machine/sysctls","value":{"vm.swappiness":"10"}}]"#,
    ];
    let schema = Schema::for_talos("v1.13.9");
    let mut count = 0_u32;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        for text in texts {
            let patch = Patch::parse(text)?;
            let patched = patch::apply(&config, &[patch], schema)?;
            black_box(&patched.text);
            count += 1;
        }
    }
    Ok(vec![Figure {
        name: "patches of an 11 KB configuration, one core",
        unit: "/s",
        measured: f64::from(count) / start.elapsed().as_secs_f64(),
        mark: 1500.0,
        more_is_better: true,
    }])
}

/// `get mc` from 1,000 nodes, each its own endpoint with its own certificate; the simulator shares the cores.
///
/// The simulator is a process of its own: the kernel counts what a process was before it became the program, so a large
/// parent would be taken for a large client.
fn thousand_nodes() -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let simulator = Simulator::start(folder.path())?;
    let talosconfig = folder.path().join("talosconfig");
    let endpoints = simulator.list("talos");
    let nodes = simulator.list("node");
    let args = [
        "--talosconfig",
        &talosconfig.display().to_string(),
        "--endpoints",
        &endpoints.join(","),
        "--nodes",
        &nodes.join(","),
        "get",
        "mc",
        "v1alpha1",
        "-o",
        "json",
    ]
    .map(str::to_owned);
    let run = run(&args, folder.path())?;
    let answers = fs::read_to_string(folder.path().join("output"))?
        .matches("\"ok\": true")
        .count();
    if answers != 1000 {
        return Err(format!("{answers} of 1,000 nodes answered").into());
    }
    let certificates = thousand_certificates(&simulator, folder.path())?;
    let mut figures = vec![
        Figure::at_most(
            "get mc from 1,000 nodes: time",
            "s",
            run.time.as_secs_f64(),
            2.0,
        ),
        Figure::at_most(
            "get mc from 1,000 nodes: memory",
            "MB",
            megabytes(run.memory),
            150.0,
        ),
    ];
    figures.extend(certificates);
    Ok(figures)
}

/// The certificates of 1,000 servers, judged; beside it the loop that people write in a shell, which judges nothing.
fn thousand_certificates(simulator: &Simulator, folder: &Path) -> Result<Vec<Figure>> {
    let endpoints = simulator.list("talos");
    let args = [
        "--talosconfig",
        &folder.join("talosconfig").display().to_string(),
        "--endpoints",
        &endpoints.join(","),
        "--nodes",
        &simulator.list("node").join(","),
        "certs",
        "check",
        "--server",
        "apid",
        "-o",
        "json",
    ]
    .map(str::to_owned);
    let run = run(&args, folder)?;
    let report = fs::read_to_string(folder.join("output"))?;
    let report: serde_json::Value = serde_json::from_str(&report)?;
    let judged = report["servers"].as_array().map_or(0, Vec::len);
    if judged != 1000 {
        return Err(format!("{judged} of 1,000 servers were judged").into());
    }
    let servers = folder.join("servers");
    fs::write(&servers, endpoints.join("\n") + "\n")?;
    let start = Instant::now();
    let looped = Command::new("sh")
        .arg("-c")
        .arg(
            "while read -r at; do openssl s_client -connect \"$at\" </dev/null 2>/dev/null | \
             openssl x509 -noout -enddate -ext subjectAltName; done <\"$0\" | grep -c notAfter",
        )
        .arg(&servers)
        .output()?;
    let seen = String::from_utf8_lossy(&looped.stdout).trim().to_owned();
    if seen != "1000" {
        return Err(format!("openssl saw {seen} of 1,000 certificates").into());
    }
    let openssl = start.elapsed();
    Ok(vec![
        Figure::at_most(
            "certs check of 1,000 servers: time",
            "s",
            run.time.as_secs_f64(),
            3.0,
        ),
        Figure::at_most(
            "certs check of 1,000 servers: memory",
            "MB",
            megabytes(run.memory),
            200.0,
        ),
        Figure {
            name: "the same with openssl s_client in a loop: slower",
            unit: "times",
            measured: openssl.as_secs_f64() / run.time.as_secs_f64(),
            mark: 5.0,
            more_is_better: true,
        },
    ])
}

/// A simulated cluster of 1,000 nodes in a process of its own.
struct Simulator {
    child: Child,
    /// What `sim up -o json` says.
    started: serde_json::Value,
}

impl Simulator {
    fn start(folder: &Path) -> Result<Self> {
        let mut child = Command::new(PROGRAM)
            .args(["sim", "up", "--controlplanes", "3", "--workers", "997"])
            .args(["-o", "json", "--dir"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let output = child.stdout.take().ok_or("the simulator has no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let started = serde_json::from_str(&line)?;
        Ok(Self { child, started })
    }

    /// Returns this field of every node.
    fn list(&self, field: &str) -> Vec<String> {
        let nodes = self.started["nodes"].as_array();
        nodes
            .into_iter()
            .flatten()
            .filter_map(|node| Some(node[field].as_str()?.to_owned()))
            .collect()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // Nothing is left to do about a simulator that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
