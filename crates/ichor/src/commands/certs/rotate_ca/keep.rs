//! The files of a rotation: its state, and the talosconfig that leads to every node at every moment.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use talos_certs::{Journal, TalosCredentials};
use talos_client::{Options, Security};
use talos_config::talosconfig::{Context, Hidden, TalosConfig};

use crate::error::{Code, Error};
use crate::files::{self, Access};

/// Where a rotation writes.
pub(super) struct Files {
    /// The talosconfig.
    pub(super) output: PathBuf,
    /// The state.
    pub(super) state: PathBuf,
    /// Name of the context.
    pub(super) context: String,
    /// What the context says where the talosconfig does not have it yet.
    pub(super) template: Context,
}

impl Files {
    /// Reads what an earlier run left.
    pub(super) fn journal(&self) -> Result<Journal, Error> {
        if !self.state.exists() {
            return Ok(Journal::default());
        }
        let text = files::read(&self.state)?;
        Journal::parse(&text)
            .map_err(|error| Error::from(error).cause(format!("it is {}", self.state.display())))
    }

    /// Refuses a talosconfig whose context of this name leads to another cluster.
    pub(super) fn check(&self, options: &Options, journal: &Journal) -> Result<(), Error> {
        let Some(config) = self.existing()? else {
            return Ok(());
        };
        if !config.contexts().contains_key(&self.context) {
            return Ok(());
        }
        let theirs = config.credentials(&self.context)?.authorities;
        let ours = match &options.security {
            Security::Mutual(credentials) => credentials.authorities.clone(),
            Security::Maintenance { .. } => Vec::new(),
        };
        let rotated = journal.rotations.iter();
        let rotated = rotated.flat_map(|one| [&one.old, one.new.certificate()]);
        let is_known = ours
            .iter()
            .chain(rotated)
            .any(|one| theirs.iter().any(|their| their.der() == one.der()));
        if is_known || theirs.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{}: context {:?} trusts other authorities: it leads to another cluster",
            self.output.display(),
            self.context
        );
        Err(Error::new(Code::Conflict, message).hint("name another file with --output"))
    }

    /// Keeps the state; it holds private keys.
    pub(super) fn write_journal(&self, text: &str) -> Result<(), Error> {
        files::write(&self.state, text.as_bytes(), Access::Owner)
    }

    /// Gives the context other credentials; everything else in the file stays.
    pub(super) fn write_talosconfig(&self, credentials: &TalosCredentials) -> Result<(), Error> {
        let file = self.output.display().to_string();
        let mut config = match self.existing()? {
            Some(config) => config,
            None => TalosConfig::parse(file, TalosConfig::EMPTY)?,
        };
        let known = config.contexts().get(&self.context);
        let mut context = known.unwrap_or(&self.template).clone();
        let pem: String = credentials
            .authorities
            .iter()
            .map(|one| one.pem())
            .collect();
        context.ca = Some(STANDARD.encode(pem));
        if let Some(identity) = &credentials.identity {
            let chain: String = identity.chain.iter().map(|one| one.pem()).collect();
            context.crt = Some(STANDARD.encode(chain));
            let key = STANDARD.encode(identity.key.pem().as_bytes());
            context.key = Some(Hidden::new(key));
        }
        config.put_context(&self.context, &context)?;
        if config.current().is_none_or(str::is_empty) {
            config.set_current(&self.context)?;
        }
        config.credentials(&self.context)?;
        files::write(&self.output, config.text().as_bytes(), Access::Owner)
    }

    /// Removes the state if nothing is left to do.
    pub(super) fn finish(&self, journal: &Journal) -> Result<(), Error> {
        if !self.state.exists() || journal.rotations.iter().any(|one| !one.finished) {
            return Ok(());
        }
        files::remove(&self.state)
    }

    fn existing(&self) -> Result<Option<TalosConfig>, Error> {
        if !self.output.exists() {
            return Ok(None);
        }
        let text = files::read(&self.output)?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        let file = self.output.display().to_string();
        Ok(Some(TalosConfig::parse(file, &text)?))
    }
}
