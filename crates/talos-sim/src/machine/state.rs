//! What a machine keeps between calls, besides its resources and configurations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::machine::apply::Apply;
use crate::machine::events::Events;
use crate::machine::logs::Logs;
use crate::machine::services::Services;

/// What a machine keeps between calls.
#[derive(Debug)]
pub(crate) struct MachineState {
    pub(crate) apply: Apply,
    pub(crate) events: Events,
    pub(crate) logs: Logs,
    pub(crate) services: Services,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    boot_id: String,
    bootstrapped: bool,
    /// Images pulled since the start, by reference, with the namespace they went to.
    images: BTreeSet<(i32, String)>,
    /// Files that a test put onto the machine.
    files: BTreeMap<String, Vec<u8>>,
}

impl MachineState {
    pub(crate) fn new(bootstrapped: bool) -> Self {
        let kept = Kept {
            boot_id: uuid(),
            bootstrapped,
            images: BTreeSet::new(),
            files: BTreeMap::new(),
        };
        Self {
            apply: <_>::default(),
            events: <_>::default(),
            logs: <_>::default(),
            services: <_>::default(),
            kept: Mutex::new(kept),
        }
    }

    /// The kernel's boot id, which changes with every boot.
    pub(crate) fn boot_id(&self) -> String {
        self.lock().boot_id.clone()
    }

    /// Forgets what does not outlive a boot.
    pub(crate) fn reboot(&self) {
        self.lock().boot_id = uuid();
        self.apply.booted();
        self.events.reboot();
        self.logs.reboot();
        self.services.reboot();
    }

    /// Notes that etcd has data; tells whether it had none before.
    pub(crate) fn bootstrap(&self) -> bool {
        !std::mem::replace(&mut self.lock().bootstrapped, true)
    }

    pub(crate) fn keep_image(&self, namespace: i32, reference: &str) {
        self.lock().images.insert((namespace, reference.to_owned()));
    }

    pub(crate) fn images(&self, namespace: i32) -> Vec<String> {
        let kept = self.lock();
        let pulled = kept.images.iter().filter(|(place, _)| *place == namespace);
        pulled.map(|(_, reference)| reference.clone()).collect()
    }

    pub(crate) fn forget_image(&self, namespace: i32, reference: &str) -> bool {
        self.lock()
            .images
            .remove(&(namespace, reference.to_owned()))
    }

    pub(crate) fn write_file(&self, path: &str, content: Vec<u8>) {
        self.lock().files.insert(path.to_owned(), content);
    }

    pub(crate) fn file(&self, path: &str) -> Option<Vec<u8>> {
        self.lock().files.get(path).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A random identifier of version 4.
pub(crate) fn uuid() -> String {
    let mut bytes: [u8; 16] = rand::random();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}
