//! Changing the text of a talosconfig without losing what the user wrote.

use serde_json::{Map, Value, json};

use super::{Auth, Context, Error, TalosConfig};
use crate::yaml::{Node, Stream};

impl TalosConfig {
    /// Makes a context the current one.
    ///
    /// # Errors
    /// There is no such context, or the text cannot be edited.
    pub fn set_current(&mut self, name: &str) -> Result<(), Error> {
        self.select(Some(name))?;
        self.write_current(name)
    }

    /// Replaces the endpoints of a context; an obsolete `target` goes.
    ///
    /// # Errors
    /// There is no such context, or the text cannot be edited.
    pub fn set_endpoints(&mut self, name: &str, endpoints: &[String]) -> Result<(), Error> {
        self.select(Some(name))?;
        self.edit_context(name, |context| {
            context.remove("target");
            context.set("endpoints", json!(endpoints));
        })
    }

    /// Replaces the nodes of a context; none removes the key.
    ///
    /// # Errors
    /// There is no such context, or the text cannot be edited.
    pub fn set_nodes(&mut self, name: &str, nodes: &[String]) -> Result<(), Error> {
        self.select(Some(name))?;
        self.edit_context(name, |context| {
            if nodes.is_empty() {
                context.remove("nodes");
            } else {
                context.set("nodes", json!(nodes));
            }
        })
    }

    /// Adds a context, or makes the one of this name say the same; keys unknown here stay.
    ///
    /// # Errors
    /// The text cannot be edited.
    pub fn put_context(&mut self, name: &str, context: &Context) -> Result<(), Error> {
        self.edit_context(name, |node| write_context(node, context))
    }

    /// Takes a context away.
    ///
    /// # Errors
    /// There is no such context, it is the current one, or the text cannot be edited.
    pub fn remove_context(&mut self, name: &str) -> Result<(), Error> {
        self.select(Some(name))?;
        if self.current() == Some(name) {
            return Err(Error::RemoveCurrent {
                file: self.file.clone(),
                context: name.to_string(),
            });
        }
        self.edit(|root| {
            if let Some(contexts) = root.get_mut("contexts") {
                contexts.remove(name);
            }
        })
    }

    pub(super) fn write_current(&mut self, name: &str) -> Result<(), Error> {
        self.edit(|root| root.set("context", json!(name)))
    }

    fn edit_context(&mut self, name: &str, change: impl FnOnce(&mut Node)) -> Result<(), Error> {
        self.edit(|root| {
            if let Some(contexts) = mapping_at(root, "contexts")
                && let Some(context) = mapping_at(contexts, name)
            {
                change(context);
            }
        })
    }

    fn edit(&mut self, change: impl FnOnce(&mut Node)) -> Result<(), Error> {
        let failed = |source| Error::Edit {
            file: self.file.clone(),
            source: Box::new(source),
        };
        let mut stream = Stream::parse(self.text()).map_err(failed)?;
        if let Some(root) = stream.root_mut(0) {
            change(root);
        }
        *self = Self::parse(self.file.clone(), &stream.to_string())?;
        Ok(())
    }
}

/// Returns the mapping under a key, made if there is none.
fn mapping_at<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    if node.get(key).is_none_or(Node::is_null) {
        node.set(key, Value::Object(Map::new()));
    }
    node.get_mut(key)
}

fn write_context(node: &mut Node, context: &Context) {
    node.remove("target");
    node.set("endpoints", json!(context.endpoints));
    let list = |items: &Vec<String>| (!items.is_empty()).then(|| json!(items));
    let text = |text: Option<&str>| text.map(Value::from);
    let key = context.key.as_ref().map(|key| key.reveal());
    for (name, value) in [
        ("nodes", list(&context.nodes)),
        ("ca", text(context.ca.as_deref())),
        ("crt", text(context.crt.as_deref())),
        ("key", text(key)),
        ("auth", auth(&context.auth)),
        ("cluster", text(context.cluster.as_deref())),
        ("proxy-url", text(context.proxy_url.as_deref())),
    ] {
        match value {
            Some(value) => node.set(name, value),
            None => {
                node.remove(name);
            }
        }
    }
}

fn auth(auth: &Auth) -> Option<Value> {
    match auth {
        Auth::None => None,
        Auth::Basic { username, password } => {
            Some(json!({"basic": {"username": username, "password": password.reveal()}}))
        }
        Auth::SideroV1 { identity } => Some(json!({"siderov1": {"identity": identity}})),
    }
}
