//! `ichor get`: resources of nodes.

mod document;
mod watch;

use futures::StreamExt;
use futures::stream;
use serde::Serialize;
use serde_json::Value;
use talos_client::jsonpath::Template;
use talos_client::{Definition, Kind, Resource, resolve};

pub(crate) use self::document::ItemData;

use self::document::Item;
use crate::connect::Target;
use crate::error::{Code, Error, Outcome};
use crate::output::{Format, Output, column_list, resource_format};
use crate::report::{self, NodeResult};
use crate::session::Session;

/// Get resources of nodes
///
/// With -o json the resources of all nodes are one document; -o yaml and -o jsonpath=EXPRESSION print them one by one, and
/// -o ndjson one a line. `ichor get rd` lists all types with their short names.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The type by any of its names, such as members or mc
    #[arg(value_name = "TYPE")]
    resource_type: String,
    /// The id; without one, all resources of the type are shown
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Look in this namespace instead of the type's own
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Go on and show every change
    #[arg(short, long)]
    watch: bool,
    /// Ask nodes in maintenance mode: no client certificate, and the server is not verified
    #[arg(short, long)]
    insecure: bool,
    /// How to print: table, json, yaml, ndjson, name or jsonpath=EXPRESSION
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = resource_format)]
    output: Format,
}

/// A resource, as `-o json` prints it.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct ResourceData {
    /// What is said about it.
    metadata: document::MetadataData,
    /// Its content; that of a machine configuration is its text.
    spec: Value,
}

/// What to look for, once the type's name is understood.
struct Query {
    definition: Definition,
    namespace: String,
    id: Option<String>,
    template: Option<Template>,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let template = match &args.output {
        Format::JsonPath(text) => {
            Some(Template::parse(text).map_err(|error| Error::of(Code::Usage, &error))?)
        }
        _ => None,
    };
    let target = if args.insecure {
        session.maintenance(&[])?
    } else {
        session.reading()?
    };
    let runtime = session.runtime()?;
    let output = &mut session.output;
    runtime.run(async {
        let definitions = match definitions(&target).await {
            Ok(definitions) => definitions,
            Err(failed) => return report::report(output, &failed, |_, _| Ok(())),
        };
        let definition = resolve(&definitions, &args.resource_type)?.clone();
        let namespace = args.namespace.filter(|name| !name.is_empty());
        let query = Query {
            namespace: namespace.unwrap_or_else(|| definition.default_namespace.clone()),
            definition,
            id: args.id,
            template,
        };
        if args.watch {
            return watch::run(output, &target, &query).await;
        }
        let results = target.each(async |node| query.ask(&node).await).await;
        show(output, &query, results)
    })
}

impl Query {
    async fn ask(&self, node: &talos_client::Node) -> Result<Vec<Resource>, Error> {
        let resource_type = &self.definition.resource_type;
        Ok(match &self.id {
            Some(id) => {
                let resource = node.get(&self.namespace, resource_type, id).await;
                vec![resource.map_err(|error| self.explain(error))?]
            }
            None => node.list(&self.namespace, resource_type).await?,
        })
    }
}

impl Query {
    /// Says what there is, where an id is not.
    fn explain(&self, error: talos_client::Error) -> Error {
        let is_missing = error.kind() == Kind::NotFound;
        let error = Error::from(error);
        if is_missing {
            return error.hint(format!(
                "`ichor get {}` lists what there is",
                self.definition.id
            ));
        }
        error
    }
}

/// Asks one node which types there are; if it does not answer, the others. All failing gives each node's failure.
async fn definitions(target: &Target) -> Result<Vec<Definition>, Vec<NodeResult<()>>> {
    let mut handles = target.handles();
    let Some((name, first)) = handles.next() else {
        return Err(Vec::new());
    };
    let mut failed = match first.definitions().await {
        Ok(definitions) => return Ok(definitions),
        Err(error) => vec![(name.to_owned(), Err(Error::from(error).node(name)))],
    };
    let mut others = stream::iter(handles)
        .map(|(name, node)| async move { (name, node.definitions().await) })
        .buffered(target.concurrency());
    while let Some((name, result)) = others.next().await {
        match result {
            Ok(definitions) => return Ok(definitions),
            Err(error) => failed.push((name.to_owned(), Err(Error::from(error).node(name)))),
        }
    }
    Err(failed)
}

/// Prints what the nodes answered.
fn show(
    output: &mut Output,
    query: &Query,
    results: Vec<NodeResult<Vec<Resource>>>,
) -> Result<Outcome, Error> {
    if matches!(output.format(), Format::Json) {
        let results: Vec<NodeResult<Vec<ResourceData>>> = results
            .into_iter()
            .map(|(node, result)| {
                let data = result.and_then(|resources| {
                    let items = resources
                        .iter()
                        .map(|resource| Item::new(output, &node, resource, None));
                    items.map(|item| Ok(item?.data())).collect()
                });
                (node, data)
            })
            .collect();
        return report::report(output, &results, |_, _| Ok(()));
    }
    let answered = results
        .iter()
        .filter_map(|(node, result)| Some((node.as_str(), result.as_ref().ok()?)));
    if matches!(output.format(), Format::Table) {
        let mut rows = answered.clone().peekable();
        if rows.peek().is_some() {
            let mut table = column_list(headers(query, false));
            for (node, resource) in
                rows.flat_map(|(node, list)| list.iter().map(move |one| (node, one)))
            {
                table.add_row(cells(query, output, node, resource, None)?);
            }
            output.table(&table)?;
        }
    } else {
        let mut first = true;
        for (node, resource) in
            answered.flat_map(|(node, list)| list.iter().map(move |one| (node, one)))
        {
            print(
                output,
                query,
                &Item::new(output, node, resource, None)?,
                first,
            )?;
            first = false;
        }
    }
    output.flush()?;
    for error in results
        .iter()
        .filter_map(|(_, result)| result.as_ref().err())
    {
        output.error(error);
    }
    Ok(report::outcome(&results))
}

/// Prints one resource in a format that prints them one by one.
fn print(output: &mut Output, query: &Query, item: &Item<'_>, first: bool) -> Result<(), Error> {
    match output.format() {
        Format::Yaml => {
            if !first {
                output.line("---")?;
            }
            output.text(&item.yaml())
        }
        Format::Name => output.line(item.id()),
        Format::JsonPath(_) => {
            let Some(template) = &query.template else {
                return Ok(());
            };
            let value = item.value();
            if template.has_text() {
                return output.text(&template.render(&value));
            }
            template
                .values(&value)
                .into_iter()
                .try_for_each(|value| output.line(&document::plain(value)))
        }
        Format::Json | Format::Ndjson | Format::Table => output.json_line(&item.value()),
    }
}

/// Returns the headers of a type's table.
fn headers(query: &Query, watch: bool) -> Vec<String> {
    let mut headers = vec!["NODE".to_owned()];
    if watch {
        headers.push("*".to_owned());
    }
    headers.extend(["NAMESPACE", "TYPE", "ID", "VERSION"].map(str::to_owned));
    let columns = query.definition.columns.iter();
    headers.extend(columns.map(|column| column.name.to_uppercase()));
    headers
}

/// Returns one row of a type's table.
fn cells(
    query: &Query,
    output: &Output,
    node: &str,
    resource: &Resource,
    marker: Option<&str>,
) -> Result<Vec<String>, Error> {
    let metadata = &resource.metadata;
    let mut cells = vec![node.to_owned()];
    cells.extend(marker.map(str::to_owned));
    cells.extend([
        metadata.namespace.clone(),
        query.definition.display_type.clone(),
        metadata.id.clone(),
        metadata.version.clone(),
    ]);
    if !query.definition.columns.is_empty() {
        let item = Item::new(output, node, resource, None)?;
        cells.extend(talos_client::columns(&query.definition, item.spec()));
    }
    Ok(cells)
}
