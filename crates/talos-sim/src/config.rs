//! Machine configurations: reading them, keeping the active and the persistent one, making them.

mod activation;
mod decode;
mod documents;
mod given;
mod keys;
mod template;
mod validate;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub(crate) use activation::{diff, needs_reboot};
pub(crate) use decode::decode;
pub(crate) use documents::Documents;
pub(crate) use given::Given;
pub(crate) use template::Template;
pub(crate) use validate::{report, validate};

use crate::node::MachineType;

/// One configuration text, read when first needed.
pub(crate) struct ConfigText {
    pub(crate) text: String,
    machine_type: MachineType,
    documents: OnceLock<Arc<Documents>>,
}

impl ConfigText {
    /// Keeps a text that is known to be readable.
    pub(crate) fn generated(text: String, machine_type: MachineType) -> Arc<Self> {
        Arc::new(Self {
            text,
            machine_type,
            documents: OnceLock::new(),
        })
    }

    /// Keeps a text together with what was read from it.
    pub(crate) fn read(text: String, documents: Arc<Documents>) -> Arc<Self> {
        let machine_type = documents.machine_type();
        Arc::new(Self {
            text,
            machine_type,
            documents: OnceLock::from(documents),
        })
    }

    pub(crate) fn documents(&self) -> Arc<Documents> {
        let read = || Arc::new(Documents::read(&self.text).unwrap_or_default());
        self.documents.get_or_init(read).clone()
    }
}

/// Configurations hold keys, so only the size is shown.
impl fmt::Debug for ConfigText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.text.len();
        f.debug_struct("ConfigText")
            .field("bytes", &bytes)
            .finish_non_exhaustive()
    }
}

/// The configurations of one machine.
#[derive(Debug, Default)]
pub(crate) struct Configs(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    active: Option<Arc<ConfigText>>,
    persistent: Option<Arc<ConfigText>>,
}

impl Configs {
    /// A machine that booted with a configuration.
    pub(crate) fn booted(text: Arc<ConfigText>) -> Self {
        Self(Mutex::new(State {
            active: Some(text.clone()),
            persistent: Some(text),
        }))
    }

    pub(crate) fn active_text(&self) -> Option<String> {
        self.lock()
            .active
            .as_ref()
            .map(|config| config.text.clone())
    }

    pub(crate) fn active(&self) -> Option<Arc<Documents>> {
        self.lock().active.as_ref().map(|config| config.documents())
    }

    pub(crate) fn active_config(&self) -> Option<Arc<ConfigText>> {
        self.lock().active.clone()
    }

    pub(crate) fn persistent_config(&self) -> Option<Arc<ConfigText>> {
        self.lock().persistent.clone()
    }

    pub(crate) fn set_active(&self, config: Arc<ConfigText>) {
        self.lock().active = Some(config);
    }

    pub(crate) fn set_persistent(&self, config: Arc<ConfigText>) {
        self.lock().persistent = Some(config);
    }

    pub(crate) fn machine_type(&self) -> MachineType {
        let state = self.lock();
        state
            .active
            .as_ref()
            .map_or(MachineType::Unknown, |config| config.machine_type)
    }

    /// Whether the machine waits for a complete configuration.
    pub(crate) fn in_maintenance(&self) -> bool {
        self.machine_type() == MachineType::Unknown
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
