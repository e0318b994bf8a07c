//! Where the two configurations come from.

use std::path::Path;

use talos_config::compare;
use talos_config::yaml::Stream;

use crate::commands::patch::change::Current;
use crate::commands::patch::input;
use crate::error::{Code, Error};
use crate::session::Session;

/// One of the two configurations.
pub(super) struct Side {
    /// What the user called it.
    pub(super) name: String,
    pub(super) text: String,
    /// The Talos version of the node it was read from.
    pub(super) talos: Option<String>,
}

impl Side {
    /// Parses the text; what is wrong with it is said with its name and line.
    pub(super) fn parse(&self) -> Result<Stream, Error> {
        compare::parse(&self.text).map_err(|error| self.fault(&error))
    }

    /// Makes the error for a text that cannot be used.
    pub(super) fn fault(&self, error: &talos_config::Error) -> Error {
        input::invalid(error).context(format!("{} cannot be compared", self.name))
    }
}

/// Reads a configuration from where its name leads.
pub(super) fn read(session: &mut Session, name: &str) -> Result<Side, Error> {
    let side = match node(name) {
        Some(node) => of_node(session, name, node)?,
        None => Side {
            name: if name == "-" { "standard input" } else { name }.to_owned(),
            text: input::text_of(session, name)?,
            talos: None,
        },
    };
    session.output.learn_secrets_of(&side.text);
    Ok(side)
}

/// Returns the node that a name means: `node:NAME`, or what is no file and is not called like one.
fn node(name: &str) -> Option<&str> {
    if let Some(node) = name.strip_prefix("node:") {
        return Some(node);
    }
    let like_a_file = name == "-"
        || name.contains(['/', '\\'])
        || [".yaml", ".yml", ".json"]
            .iter()
            .any(|end| name.ends_with(end))
        || Path::new(name).exists();
    (!like_a_file).then_some(name)
}

/// Reads the active configuration of a node.
fn of_node(session: &mut Session, name: &str, node: &str) -> Result<Side, Error> {
    let guessed = name == node;
    let explain = |error: Error| {
        let error = error.context(format!("the machine config of node {node} cannot be read"));
        match guessed {
            true => error.hint(format!(
                "there is no file {name}, so a node was meant; a file that is there, ./{name}, or node:{node} says which"
            )),
            false => error,
        }
    };
    if node.is_empty() {
        return Err(Error::new(Code::Usage, "node: lacks the name of a node"));
    }
    session.global.nodes = vec![node.to_owned()];
    session.global.all_nodes = false;
    let target = session.reading().map_err(explain)?;
    let (_, handle) = target.only();
    let current = session
        .runtime()?
        .run(Current::read(&handle))
        .map_err(explain)?;
    let text = current.active()?.text.clone();
    let talos = Some(current.talos().to_owned()).filter(|talos| !talos.is_empty());
    Ok(Side {
        name: format!("node {node}"),
        text,
        talos,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_files_are_told_apart() {
        for (name, expected) in [
            ("-", None),
            ("missing.yaml", None),
            ("./cp-1", None),
            ("Cargo.toml", None),
            ("10.5.0.2", Some("10.5.0.2")),
            ("cp-1.example.com", Some("cp-1.example.com")),
            ("node:Cargo.toml", Some("Cargo.toml")),
        ] {
            assert_eq!(node(name), expected, "{name}");
        }
    }
}
