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
use crate::session::Session;

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
    let mut results = Vec::with_capacity(target.nodes.len());
    for (name, node) in target.handles() {
        let result = edit(session, name, &node, order).map_err(|error| error.node(name));
        results.push((name.to_owned(), result));
    }
    change::show(&mut session.output, order, &results)
}

/// Lets the user edit the configuration of one node until the node takes it or the user gives up.
fn edit(session: &mut Session, name: &str, node: &Node, order: Order) -> Result<Change, Error> {
    let runtime = session.runtime()?;
    let current = runtime.run(Current::read(node))?;
    session.output.learn_secrets_of(current.text());
    let active = current.active()?;
    let mut draft = Draft::new(&session.env, name, &active.text)?;
    let mut refused: Option<String> = None;
    let mut problem: Option<Error> = None;
    loop {
        let text = draft.edit(problem.as_ref())?;
        if text.trim().is_empty() || text == active.text {
            draft.discard();
            return Ok(Change::unchanged("edit cancelled, nothing was changed"));
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
                runtime.run(change::apply(
                    node,
                    &current,
                    made,
                    order,
                    session.output.shows_secrets(),
                ))
            });
        match attempt {
            Ok(change) => {
                draft.discard();
                return Ok(change);
            }
            Err(error) if matches!(error.code(), Code::Invalid | Code::RefusedByNode) => {
                refused = Some(text);
                problem = Some(error);
            }
            Err(error) => return Err(draft.keep(error)),
        }
    }
}
