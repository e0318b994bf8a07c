//! One run of the program: what verbs are given to work with.

use std::ffi::OsString;

use crate::cli::{self, Global};
use crate::env::Env;
use crate::error::{Code, Error};
use crate::flags;
use crate::io::Io;
use crate::output::{Format, Output};
use crate::runtime::{Runtime, interrupted};

/// What a verb works with: global flags, environment, output, and the way to its cluster.
pub(crate) struct Session {
    /// The flags that every verb takes.
    pub(crate) global: Global,
    /// The environment variables.
    pub(crate) env: Env,
    /// Where to print.
    pub(crate) output: Output,
    runtime: Option<Runtime>,
    interrupted: Option<Error>,
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
        let answer = self.ask(&format!("{what} [y/N] "))?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => refused("not confirmed"),
        }
    }

    /// Puts a question to the person at the terminal and returns the line they answer with.
    pub(crate) fn ask(&mut self, question: &str) -> Result<String, Error> {
        let runtime = self.runtime()?;
        let output = &mut self.output;
        // Once the runtime has listened for Ctrl-C, nothing else ends the program: it has to listen here too.
        let answer = runtime.run(async {
            output.prompt(question);
            output.read_line().await
        });
        if answer
            .as_ref()
            .is_err_and(|error| error.code() == Code::Interrupted)
        {
            // Ends the line of the question.
            self.output.note("");
        }
        answer
    }

    /// Remembers that the user asked to stop and that the run did so at a safe point: it ends with exit code 130 once its
    /// results are printed. `left` are the nodes that are still to be done.
    pub(crate) fn stopped(&mut self, left: &[String]) {
        self.interrupted = Some(interrupted().hint(match left {
            [] => "every node was finished all the same".to_owned(),
            left => format!(
                "nodes under way were finished; run the same command with -n {} to go on",
                left.join(",")
            ),
        }));
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
        output.masker().tell_more();
    }
    let mut session = Session {
        global: cli.global,
        env,
        output,
        runtime: None,
        interrupted: None,
    };
    let result = cli.command.run(&mut session).and_then(|outcome| {
        session.output.flush()?;
        Ok(outcome)
    });
    let exit = match (result, session.interrupted.take()) {
        (Ok(outcome), None) => outcome.exit(),
        (Ok(_), Some(error)) | (Err(error), _) => {
            // What was printed before the failure still belongs to the reader.
            let _ = session.output.flush();
            session.output.error(&error);
            error.code().exit()
        }
    };
    if let Some(runtime) = session.runtime.take() {
        runtime.end();
    }
    exit
}
