//! Knobs: what goes wrong on one node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// Whether a node's apid can be dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Connections are accepted and answered.
    Up,
    /// Connections are refused, as on a machine that is down.
    Refusing,
    /// Connections are accepted and never answered, as behind a firewall that drops packets.
    Silent,
}

/// The certificate that a node's apid presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedCertificate {
    /// The one that was issued for the node.
    Own,
    /// One of the right authority that has expired.
    Expired,
    /// One of an authority that nobody knows.
    ForeignAuthority,
    /// One that covers other names and addresses than the node's.
    OtherNames,
}

/// What goes wrong on one node; every change takes effect at once.
#[derive(Debug)]
pub struct Faults {
    reach: watch::Sender<Reach>,
    drops: watch::Sender<u64>,
    served: Mutex<ServedCertificate>,
    methods: Mutex<BTreeMap<String, MethodFault>>,
    missing_images: Mutex<BTreeSet<String>>,
}

/// What goes wrong in one method.
#[derive(Clone, Debug, Default)]
pub(crate) struct MethodFault {
    pub(crate) delay: Duration,
    pub(crate) error: Option<(tonic::Code, String)>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            reach: watch::Sender::new(Reach::Up),
            drops: watch::Sender::new(0),
            served: Mutex::new(ServedCertificate::Own),
            methods: Mutex::default(),
            missing_images: Mutex::default(),
        }
    }
}

impl Faults {
    /// Sets whether the node can be dialled; open connections are cut when it cannot.
    ///
    /// A reboot that ends makes the node answer again.
    pub fn set_reach(&self, reach: Reach) {
        self.reach.send_replace(reach);
        if reach != Reach::Up {
            self.drop_connections();
        }
    }

    /// Tells whether the node can be dialled.
    pub fn reach(&self) -> Reach {
        *self.reach.borrow()
    }

    /// Cuts all open connections to the node's apid.
    pub fn drop_connections(&self) {
        self.drops.send_modify(|count| *count += 1);
    }

    /// Sets the certificate that new connections are shown.
    pub fn serve_certificate(&self, certificate: ServedCertificate) {
        *lock(&self.served) = certificate;
    }

    /// Delays every answer of a method, given by its full path.
    pub fn delay(&self, method: &str, delay: Duration) {
        lock(&self.methods)
            .entry(method.to_owned())
            .or_default()
            .delay = delay;
    }

    /// Fails every call of a method, given by its full path.
    pub fn fail(&self, method: &str, code: tonic::Code, message: &str) {
        let error = Some((code, message.to_owned()));
        lock(&self.methods)
            .entry(method.to_owned())
            .or_default()
            .error = error;
    }

    /// Makes a method behave again.
    pub fn restore(&self, method: &str) {
        lock(&self.methods).remove(method);
    }

    /// Lets no registry know an image, so that pulling it fails.
    pub fn miss_image(&self, reference: &str) {
        lock(&self.missing_images).insert(reference.to_owned());
    }

    pub(crate) fn watch_reach(&self) -> watch::Receiver<Reach> {
        self.reach.subscribe()
    }

    pub(crate) fn watch_drops(&self) -> watch::Receiver<u64> {
        self.drops.subscribe()
    }

    pub(crate) fn served(&self) -> ServedCertificate {
        *lock(&self.served)
    }

    pub(crate) fn method(&self, path: &str) -> MethodFault {
        lock(&self.methods).get(path).cloned().unwrap_or_default()
    }

    pub(crate) fn is_missing(&self, reference: &str) -> bool {
        lock(&self.missing_images).contains(reference)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
