//! `ichor get --watch`: every change as it comes.

use futures::StreamExt;
use futures::stream::{self, Stream};
use talos_client::{Resource, Watch, WatchEvent, WatchOptions};

use super::document::Item;
use super::{Query, cells, headers, print};
use crate::connect::Target;
use crate::error::{Error, Outcome};
use crate::output::{Format, Output};
use crate::report::{self, NodeResult};

/// Shows what exists, then every change, until stopped.
pub(super) async fn run(
    output: &mut Output,
    target: &Target,
    query: &Query,
) -> Result<Outcome, Error> {
    let resource_type = &query.definition.resource_type;
    let opened = target
        .each(async |node| {
            let id = query.id.as_deref();
            Ok(node
                .watch(&query.namespace, resource_type, id, WatchOptions::default())
                .await?)
        })
        .await;
    let mut results: Vec<NodeResult<()>> = Vec::new();
    let mut watches = Vec::new();
    for (name, result) in opened {
        match result {
            Ok(watch) => watches.push(events(name, watch).boxed()),
            Err(error) => {
                output.error(&error);
                results.push((name, Err(error)));
            }
        }
    }
    // What existed at the start is laid out together, unless one resource is watched: that start has no end.
    let waiting = if query.id.is_some() { 0 } else { watches.len() };
    let mut view = View {
        widths: Vec::new(),
        held: vec![headers(query, true)],
        waiting,
        first: true,
    };
    view.release(output)?;
    let mut watches = stream::select_all(watches);
    while let Some((node, event)) = watches.next().await {
        match event {
            Ok(Some(event)) => view.show(output, query, &node, event)?,
            Ok(None) => results.push((node, Ok(()))),
            Err(error) => {
                let error = error.node(&node);
                output.error(&error);
                view.bootstrapped(output)?;
                results.push((node, Err(error)));
            }
        }
    }
    Ok(report::outcome(&results))
}

/// Turns a watch into a stream that ends with nothing, or with an error.
fn events(
    node: String,
    watch: Watch,
) -> impl Stream<Item = (String, Result<Option<WatchEvent>, Error>)> {
    stream::unfold(Some((node, watch)), |state| async move {
        let (node, mut watch) = state?;
        match watch.next().await {
            Ok(Some(event)) => Some(((node.clone(), Ok(Some(event))), Some((node, watch)))),
            Ok(None) => Some(((node, Ok(None)), None)),
            Err(error) => Some(((node, Err(error.into())), None)),
        }
    })
}

/// What was printed so far, as far as the next line depends on it.
struct View {
    widths: Vec<usize>,
    /// Rows that wait until the width of their columns is known.
    held: Vec<Vec<String>>,
    /// Nodes whose existing resources have not all come yet.
    waiting: usize,
    first: bool,
}

impl View {
    fn show(
        &mut self,
        output: &mut Output,
        query: &Query,
        node: &str,
        event: WatchEvent,
    ) -> Result<(), Error> {
        match event {
            WatchEvent::Created(resource) => {
                self.resource(output, query, node, &resource, ("created", "+"))
            }
            WatchEvent::Updated { new, .. } => {
                self.resource(output, query, node, &new, ("updated", " "))
            }
            WatchEvent::Destroyed(resource) => {
                self.resource(output, query, node, &resource, ("destroyed", "-"))
            }
            WatchEvent::Bootstrapped => self.bootstrapped(output),
            WatchEvent::Interrupted { cause, wait } => {
                output.note(&format!(
                    "{node}: the watch broke ({cause}); trying again in {wait:?}"
                ));
                Ok(())
            }
            WatchEvent::Resumed => {
                output.note(&format!("{node}: the watch goes on"));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn resource(
        &mut self,
        output: &mut Output,
        query: &Query,
        node: &str,
        resource: &Resource,
        (event, marker): (&str, &str),
    ) -> Result<(), Error> {
        if *output.format() == Format::Table {
            self.held
                .push(cells(query, output, node, resource, Some(marker))?);
            return self.release(output);
        }
        let item = Item::new(output, node, resource, Some(event))?;
        print(output, query, &item, self.first)?;
        self.first = false;
        output.flush()
    }

    fn bootstrapped(&mut self, output: &mut Output) -> Result<(), Error> {
        self.waiting = self.waiting.saturating_sub(1);
        self.release(output)
    }

    /// Prints the rows that waited, if there is nothing more to wait for.
    fn release(&mut self, output: &mut Output) -> Result<(), Error> {
        if self.waiting > 0 || *output.format() != Format::Table {
            return Ok(());
        }
        for row in &self.held {
            self.widths.resize(row.len().max(self.widths.len()), 0);
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for row in self.held.drain(..) {
            let cells = self
                .widths
                .iter()
                .zip(&row)
                .map(|(width, cell)| format!("{cell:<width$}"));
            output.line(cells.collect::<Vec<_>>().join("   ").trim_end())?;
        }
        output.flush()
    }
}
