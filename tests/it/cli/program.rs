//! Running the real program with an environment of its own.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use talos_config::talosconfig::TalosConfig;
use talos_sim::{Cluster, Options};

/// What a run printed and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Reads stdout as one JSON document.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Reads the error object on stderr.
    pub(crate) fn error(&self) -> serde_json::Value {
        let line = self.stderr.lines().last().unwrap_or_default();
        let document: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        document["error"].clone()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A simulated cluster, and a home folder whose talosconfig leads to it.
pub(crate) struct Lab {
    pub(crate) cluster: Cluster,
    pub(crate) home: Home,
    /// The nodes, as `-n` takes them.
    pub(crate) nodes: Vec<String>,
}

impl Lab {
    /// Starts a cluster; the context lists its nodes.
    pub(crate) async fn start(options: Options) -> Self {
        Self::with_roles(options, &["os:admin"]).await
    }

    /// Starts a cluster, whose talosconfig has these roles.
    pub(crate) async fn with_roles(options: Options, roles: &[&str]) -> Self {
        let cluster = Cluster::start(options).await.unwrap();
        let home = Home::new();
        let nodes: Vec<String> = cluster
            .nodes()
            .iter()
            .map(|node| node.address().to_string())
            .collect();
        let mut config = TalosConfig::parse("talosconfig", &cluster.talosconfig(roles)).unwrap();
        let name = config.current().unwrap().to_owned();
        config.set_nodes(&name, &nodes).unwrap();
        home.file(".talos/config", config.text());
        Self {
            cluster,
            home,
            nodes,
        }
    }

    /// Runs the program; the simulated nodes answer meanwhile.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        tokio::task::block_in_place(|| self.home.run(args))
    }

    /// Runs the program and returns its JSON document, which must be the only thing on stdout.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let ran = self.run(&[args, &["-o", "json"]].concat());
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran.json()
    }

    /// Returns the calls that changed something.
    pub(crate) fn changes(&self) -> Vec<String> {
        let calls = self.cluster.calls().into_iter();
        calls
            .filter(|call| call.mutating)
            .map(|call| call.method)
            .collect()
    }
}

/// A home folder of its own for runs of the program.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file into the home folder and returns its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Prepares a run with nothing in its environment but the home folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ichor"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.path())
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs the program with a text on its standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Ran {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap().into()
    }

    /// Runs the program.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }
}
