//! `ichor logs`: what services and containers wrote.

use futures::StreamExt;
use futures::stream::{self, Stream};
use serde::Serialize;
use talos_client::{ByteStream, LogRequest, LogSource};

use crate::connect::Target;
use crate::error::{Error, Outcome};
use crate::output::{Format, Output, OutputArgs};
use crate::report::{self, NodeResult, report};
use crate::session::Session;

/// Print the logs of a service or container
///
/// With -f and -o ndjson every line is an object; -o json without -f is one document.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The service, or with -k the container as NAMESPACE/POD:CONTAINER
    #[arg(value_name = "SERVICE")]
    service: String,
    /// Wait for more lines at the end
    #[arg(short, long)]
    follow: bool,
    /// Print the log of a Kubernetes container
    #[arg(short, long)]
    kubernetes: bool,
    /// Print only so many of the last lines; -1 prints all
    #[arg(long, value_name = "N", default_value = "-1")]
    tail: i32,
    #[command(flatten)]
    output: OutputArgs,
}

/// The log of a node.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Log {
    /// Its lines, without line ends.
    lines: Vec<String>,
}

/// One line of a log, as `-o ndjson` prints it.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Line<'a> {
    /// The node as the user named it.
    node: &'a str,
    /// The line, without its end.
    line: &'a str,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let target = session.reading()?;
    let request = LogRequest {
        source: if args.kubernetes {
            LogSource::Kubernetes
        } else {
            LogSource::System
        },
        id: args.service,
        follow: args.follow,
        tail: u32::try_from(args.tail).ok(),
    };
    let runtime = session.runtime()?;
    let output = &mut session.output;
    let document = matches!(output.format(), Format::Json | Format::Yaml);
    if document && !args.follow {
        let results = runtime.run(async {
            Ok(target
                .each(async |node| {
                    let bytes = node.logs(request.clone()).collect().await?;
                    let text = String::from_utf8_lossy(&bytes);
                    Ok(Log {
                        lines: text.lines().map(str::to_owned).collect(),
                    })
                })
                .await)
        })?;
        return report(output, &results, |_, _| Ok(()));
    }
    runtime.run(async { follow(output, &target, &request).await })
}

/// Prints the lines of all nodes as they come.
async fn follow(
    output: &mut Output,
    target: &Target,
    request: &LogRequest,
) -> Result<Outcome, Error> {
    let objects = *output.format() != Format::Table;
    let mut results: Vec<NodeResult<()>> = Vec::new();
    let logs = target
        .handles()
        .map(|(name, node)| lines(name, node.logs(request.clone())).boxed());
    let mut logs = stream::select_all(logs);
    while let Some((node, item)) = logs.next().await {
        match item {
            Ok(Some(line)) if objects => output.json_line(&Line { node, line: &line })?,
            Ok(Some(line)) => output.line(&format!("{node}: {line}"))?,
            Ok(None) => results.push((node.to_owned(), Ok(()))),
            Err(error) => {
                output.error(&error);
                results.push((node.to_owned(), Err(error)));
            }
        }
        if request.follow {
            output.flush()?;
        }
    }
    Ok(report::outcome(&results))
}

/// Cuts a stream of bytes into lines; ends with nothing, or with the error that ended it.
fn lines(
    node: &str,
    bytes: ByteStream,
) -> impl Stream<Item = (&str, Result<Option<String>, Error>)> {
    let cutter = Some((bytes, Cutter::default()));
    stream::unfold(cutter, move |state| async move {
        let (mut bytes, mut cutter) = state?;
        loop {
            if let Some(line) = cutter.line() {
                return Some(((node, Ok(Some(line))), Some((bytes, cutter))));
            }
            match bytes.next().await {
                Some(Ok(piece)) => cutter.push(&piece),
                Some(Err(error)) => {
                    return Some(((node, Err(Error::from(error).node(node))), None));
                }
                None => match cutter.rest() {
                    Some(line) => return Some(((node, Ok(Some(line))), Some((bytes, cutter)))),
                    None => return Some(((node, Ok(None)), None)),
                },
            }
        }
    })
}

/// Bytes that came and were not yet handed out as lines.
#[derive(Default)]
struct Cutter {
    pending: Vec<u8>,
    start: usize,
}

impl Cutter {
    fn push(&mut self, piece: &[u8]) {
        self.pending.drain(..self.start);
        self.start = 0;
        self.pending.extend_from_slice(piece);
    }

    /// Takes the next whole line.
    fn line(&mut self) -> Option<String> {
        let length = self.pending[self.start..]
            .iter()
            .position(|byte| *byte == b'\n')?;
        let line = &self.pending[self.start..self.start + length];
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
        self.start += length + 1;
        Some(line)
    }

    /// Takes what is left behind the last line end.
    fn rest(&mut self) -> Option<String> {
        let rest = self.pending.split_off(self.start);
        self.pending.clear();
        self.start = 0;
        (!rest.is_empty()).then(|| String::from_utf8_lossy(&rest).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(pieces: &[&[u8]]) -> Vec<String> {
        let mut cutter = Cutter::default();
        let mut lines = Vec::new();
        for piece in pieces {
            cutter.push(piece);
            lines.extend(std::iter::from_fn(|| cutter.line()));
        }
        lines.extend(cutter.rest());
        lines
    }

    #[test]
    fn pieces_are_cut_at_line_ends_only() {
        assert_eq!(cut(&[b"a\nb", b"c\r\n", b"\nd"]), ["a", "bc", "", "d"]);
        assert_eq!(cut(&[b"", b"\n"]), [""]);
        assert!(cut(&[]).is_empty());
        assert_eq!(
            cut(&["a\u{fc}".as_bytes(), &[0xff], b"\n"]),
            ["a\u{fc}\u{fffd}"]
        );
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_bytes_come(text in "[a\n]{0,40}", at in 0usize..40) {
            let at = at.min(text.len());
            let (first, second) = text.as_bytes().split_at(at);
            prop_assert_eq!(cut(&[first, second]), text.lines().collect::<Vec<_>>());
        }
    }
}
