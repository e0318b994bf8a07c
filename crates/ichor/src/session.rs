//! One run of the program: what verbs are given to work with.

use std::ffi::OsString;

use crate::cli::{self, Global};
use crate::env::Env;
use crate::error::{Code, Error};
use crate::flags;
use crate::io::Io;
use crate::output::{Format, Output};
use crate::runtime::Runtime;

/// What a verb works with: global flags, environment, output, and the way to its cluster.
pub(crate) struct Session {
    /// The flags that every verb takes.
    pub(crate) global: Global,
    /// The environment variables.
    pub(crate) env: Env,
    /// Where to print.
    pub(crate) output: Output,
    runtime: Option<Runtime>,
}

impl Session {
    /// Returns the asynchronous runtime, starting it on first use.
    pub(crate) fn runtime(&mut self) -> Result<Runtime, Error> {
        if self.runtime.is_none() {
            self.runtime = Some(Runtime::start()?);
        }
        self.runtime
            .clone()
            .ok_or_else(|| Error::new(Code::Failed, "the asynchronous runtime is gone"))
    }

    /// Asks before something dangerous: `--yes` answers, and so does a person at a terminal.
    ///
    /// `what` ends in a question mark. Without `--yes` and without a terminal the run is refused (exit 5).
    pub(crate) fn confirm(&mut self, what: &str) -> Result<(), Error> {
        if self.global.yes {
            return Ok(());
        }
        let refused = |message: &str| {
            Err(Error::new(Code::NotConfirmed, message)
                .hint("add --yes to do it without being asked"))
        };
        if !self.output.is_interactive() {
            return refused("not confirmed, and there is no terminal to ask at");
        }
        self.output.prompt(&format!("{what} [y/N] "));
        let answer = self.output.read_line()?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => refused("not confirmed"),
        }
    }
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: Vec<OsString>, env: Env, io: Io) -> u8 {
    let mut output = Output::new(io, &env);
    let (cli, format) = match cli::parse(&args, &env) {
        Ok(parsed) => parsed,
        Err(error) => {
            if flags::wants_json(&args) {
                output.set_format(Format::Json);
            }
            return output.usage(&error);
        }
    };
    output.set_format(format);
    if cli.global.show_secrets {
        output.show_secrets();
    }
    if cli.global.verbose {
        tell_more();
    }
    let mut session = Session {
        global: cli.global,
        env,
        output,
        runtime: None,
    };
    let result = cli.command.run(&mut session).and_then(|outcome| {
        session.output.flush()?;
        Ok(outcome)
    });
    match result {
        Ok(outcome) => outcome.exit(),
        Err(error) => {
            // What was printed before the failure still belongs to the reader.
            let _ = session.output.flush();
            session.output.error(&error);
            error.code().exit()
        }
    }
}

/// Has the libraries tell on stderr what they try, such as which endpoint does not answer and why.
fn tell_more() {
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(LIBRARIES)
        .with_writer(std::io::stderr)
        .without_time();
    // Only a second run in the same process finds one set, and that one does the same.
    let _ = subscriber.try_init();
}

/// Whose words are shown, and up to which level.
const LIBRARIES: &str = "talos_client=debug,talos_kube=debug,talos_certs=debug,talos_upgrade=debug";
