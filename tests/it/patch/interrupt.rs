//! Ctrl-C while nodes are changed.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use talos_sim::Options;

use super::active;
use crate::cli::program::{Lab, Ran};

/// How long something that a test waits for may take.
const PATIENCE: Duration = Duration::from_secs(60);

const APPLY: &str = "/machine.MachineService/ApplyConfiguration";

/// A run of `patch` on both nodes, one after the other, that is on its first node.
struct Patching {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
}

impl Patching {
    /// Starts the run; the first node takes its time to answer.
    fn start(lab: &Lab, answer: Duration) -> Self {
        lab.cluster.nodes()[0].faults().delay(APPLY, answer);
        let nodes = lab.nodes.join(",");
        let patch = "machine: {nodeLabels: {patched: a}}";
        let args = ["patch", "mc", "-n", &nodes, "-p", patch, "--concurrency=1"];
        let mut child = lab
            .home
            .command(&args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let start = Instant::now();
        while !lab.cluster.calls().iter().any(|call| call.method == APPLY) {
            assert!(start.elapsed() < PATIENCE, "nothing is applied");
            std::thread::yield_now();
        }
        Self {
            child,
            stderr,
            said: String::new(),
        }
    }

    fn interrupt(&self) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until the run says something.
    fn hear(&mut self, words: &str) {
        while !self.said.contains(words) {
            let read = self.stderr.read_line(&mut self.said).unwrap();
            assert_ne!(read, 0, "{words:?} is not in {:?}", self.said);
        }
    }

    fn end(mut self) -> Ran {
        self.stderr.read_to_string(&mut self.said).unwrap();
        let mut ran = Ran::from(self.child.wait_with_output().unwrap());
        ran.stderr = self.said;
        ran
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_interrupt_finishes_what_is_under_way_and_tells_how_to_go_on() {
    let lab = Lab::start(Options::default()).await;
    let before = active(&lab, 1);
    let ran = tokio::task::block_in_place(|| {
        let mut run = Patching::start(&lab, Duration::from_secs(1));
        run.interrupt();
        run.hear("stopping: the nodes under way are finished first");
        run.end()
    });
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let (first, second) = (&lab.nodes[0], &lab.nodes[1]);
    let done = format!("{first}: Applied configuration without a reboot");
    assert!(ran.stdout.contains(&done), "{ran:?}");
    for words in [
        format!("{second}: not started"),
        format!("run the same command with -n {second} to go on"),
    ] {
        assert!(ran.stderr.contains(&words), "{words:?} in {ran:?}");
    }
    assert!(active(&lab, 0).contains("patched: a"));
    assert_eq!(active(&lab, 1), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_interrupt_ends_at_once_and_tells_how_far_each_node_was() {
    let lab = Lab::start(Options::default()).await;
    let ran = tokio::task::block_in_place(|| {
        let mut run = Patching::start(&lab, Duration::from_secs(3600));
        run.interrupt();
        run.hear("Ctrl-C again stops at once");
        run.interrupt();
        run.end()
    });
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let (first, second) = (&lab.nodes[0], &lab.nodes[1]);
    for words in [
        format!("under way on, and perhaps done on, {first}; not started on {second}"),
        format!("with -n {first},{second} to go on"),
    ] {
        assert!(ran.stderr.contains(&words), "{words:?} in {ran:?}");
    }
}
