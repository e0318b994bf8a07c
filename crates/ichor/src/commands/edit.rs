//! `ichor edit`: change the machine config of nodes in an editor.

mod editor;

use talos_client::Node;
use talos_config::yaml::Stream;

use self::editor::Draft;
use super::patch::change::{self, Change, Current, Made};
use super::patch::input;
use super::patch::order::{Order, OrderArgs};
use crate::error::{Code, Error, Outcome};
use crate::output::OutputArgs;
use crate::report::NodeResult;
use crate::session::Session;
use crate::steps::{left, not_started};

/// Edit the machine config of nodes
///
/// Opens $TALOS_EDITOR, $EDITOR or vi with the active configuration of one node after the other. An empty or unchanged text
/// is not sent. If the node refuses the text, the editor opens again with the reasons at the top.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to edit: machineconfig, or mc for short
    #[arg(value_name = "RESOURCE", value_parser = input::machine_config_type)]
    _resource: String,
    /// Which one; the active configuration is the only one that can be edited
    #[arg(value_name = "ID", value_parser = ["v1alpha1"])]
    _id: Option<String>,
    /// The resource's namespace; machine configurations are in `config`
    #[arg(long, value_name = "NAME", value_parser = input::namespace)]
    namespace: Option<String>,
    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let order = args.order.order();
    let target = session.changing(order.verb("edit"))?;
    let mut results: Vec<NodeResult<Change>> = Vec::with_capacity(target.nodes.len());
    let mut stopped = false;
    for (name, node) in target.handles() {
        if stopped {
            results.push((name.to_owned(), Err(not_started().node(name))));
            continue;
        }
        let result = edit(session, name, &node, order).map_err(|error| error.node(name));
        stopped = match &result {
            Ok(edited) => edited.stop,
            Err(error) => error.code() == Code::Interrupted,
        };
        results.push((name.to_owned(), result.map(|edited| edited.change)));
    }
    if stopped {
        session.stopped(&left(&results));
    }
    change::show(&mut session.output, order, &results)
}

/// How the edit of one node ended.
struct Edited {
    change: Change,
    /// Whether the user asked to stop meanwhile.
    stop: bool,
}

/// Lets the user edit the configuration of one node until the node takes it or the user gives up.
fn edit(session: &mut Session, name: &str, node: &Node, order: Order) -> Result<Edited, Error> {
    let runtime = session.runtime()?;
    let current = runtime.run(Current::read(node))?;
    session.output.learn_secrets_of(current.text());
    let active = current.active()?;
    // Nothing that is edited could make these better.
    change::check_mode(&current, order)?;
    change::warn_pending(&mut session.output, name, &current, order);
    let mut draft = Draft::new(&session.env, name, &active.text)?;
    let mut refused: Option<String> = None;
    let mut problem: Option<Error> = None;
    loop {
        let text = draft.edit(problem.as_ref())?;
        if text.trim().is_empty() || text == active.text {
            draft.discard();
            return Ok(Edited {
                change: Change::unchanged("edit cancelled, nothing was changed"),
                stop: false,
            });
        }
        session.output.learn_secrets_of(&text);
        if refused.as_ref() == Some(&text) {
            let error =
                problem.unwrap_or_else(|| Error::new(Code::Invalid, "the text was refused"));
            return Err(draft.keep(
                error.context("edit cancelled: the text was not changed after it was refused"),
            ));
        }
        let attempt = Stream::parse(&text)
            .map_err(|error| input::invalid(&error))
            .and_then(|_| {
                let made = Made {
                    text: text.clone(),
                    warnings: Vec::new(),
                    expected: Some(active.version.clone()),
                };
                let shown = session.output.shows_secrets();
                runtime.run_steps(async |interrupt| {
                    let change = change::apply(node, &current, made, order, shown).await?;
                    let stop = interrupt.is_asked();
                    Ok(Edited { change, stop })
                })
            });
        match attempt {
            Ok(edited) => {
                draft.discard();
                return Ok(edited);
            }
            Err(error) if matches!(error.code(), Code::Invalid | Code::RefusedByNode) => {
                refused = Some(text);
                problem = Some(error);
            }
            Err(error) => return Err(draft.keep(error)),
        }
    }
}
