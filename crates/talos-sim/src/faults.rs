//! Knobs: what goes wrong on one node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::sign::CertifiedKey;
use talos_pki::{Certificate, PrivateKey};
use tokio::sync::watch;

use crate::apid::tls;
use crate::servers::Server;

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

/// The certificate that a server of a node presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedCertificate {
    /// The one that was issued for the node.
    Own,
    /// One of the right authority that has expired.
    Expired,
    /// One of the right authority that becomes valid tomorrow.
    NotYetValid,
    /// One of an authority that nobody knows.
    ForeignAuthority,
    /// One of another authority of the same cluster: that of Kubernetes for Talos and etcd, that of Talos for Kubernetes.
    OtherAuthority,
    /// One that covers other names and addresses than the node's.
    OtherNames,
    /// One without subjectAltName, whose common name is the node's host name.
    CommonNameOnly,
    /// One for clients only.
    ClientOnly,
}

/// How a server treats those who connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behavior {
    /// As it should.
    #[default]
    Normal,
    /// Nobody listens on its port; not for apid and kube-apiserver, which have [`Reach::Refusing`].
    Closed,
    /// It takes the connection and then says nothing.
    Hang,
    /// It answers in HTTP without TLS.
    PlainHttp,
    /// It offers no newer TLS than 1.2.
    Tls12Only,
    /// It resets the connection in the middle of the handshake.
    Reset,
    /// Its chain is a megabyte long.
    HugeChain,
}

/// What a server presents.
#[derive(Clone, Debug)]
pub(crate) enum Served {
    /// Something that the node makes.
    Made(ServedCertificate),
    /// What a test gave.
    Given(Arc<CertifiedKey>),
}

/// What goes wrong on one node; every change takes effect at once.
#[derive(Debug)]
pub struct Faults {
    reach: watch::Sender<Reach>,
    drops: watch::Sender<u64>,
    served: Mutex<BTreeMap<Server, Served>>,
    behaviors: watch::Sender<BTreeMap<Server, Behavior>>,
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
            served: Mutex::default(),
            behaviors: watch::Sender::new(BTreeMap::new()),
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

    /// Sets the certificate that new connections to apid are shown.
    pub fn serve_certificate(&self, certificate: ServedCertificate) {
        self.serve_certificate_on(Server::Apid, certificate);
    }

    /// Sets the certificate that new connections to a server are shown.
    pub fn serve_certificate_on(&self, server: Server, certificate: ServedCertificate) {
        lock(&self.served).insert(server, Served::Made(certificate));
    }

    /// Sets the chain, leaf first, that new connections to a server are shown, whatever is wrong with it.
    ///
    /// # Errors
    /// A key that TLS cannot use.
    pub fn serve_chain(
        &self,
        server: Server,
        chain: &[Certificate],
        key: &PrivateKey,
    ) -> Result<(), rustls::Error> {
        let ders = chain.iter().map(|certificate| certificate.der().to_vec());
        self.serve_ders(server, ders.collect(), key)
    }

    /// Sets what new connections to a server are shown as its chain, which need not even be certificates.
    ///
    /// # Errors
    /// A key that TLS cannot use.
    pub fn serve_ders(
        &self,
        server: Server,
        chain: Vec<Vec<u8>>,
        key: &PrivateKey,
    ) -> Result<(), rustls::Error> {
        let given = Served::Given(tls::certified_ders(chain, key)?);
        lock(&self.served).insert(server, given);
        Ok(())
    }

    /// Sets how a server treats new connections.
    pub fn behave(&self, server: Server, behavior: Behavior) {
        self.behaviors.send_modify(|behaviors| {
            behaviors.insert(server, behavior);
        });
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

    pub(crate) fn watch_behaviors(&self) -> watch::Receiver<BTreeMap<Server, Behavior>> {
        self.behaviors.subscribe()
    }

    pub(crate) fn behavior(&self, server: Server) -> Behavior {
        let behaviors = self.behaviors.borrow();
        behaviors.get(&server).copied().unwrap_or_default()
    }

    pub(crate) fn served(&self, server: Server) -> Served {
        let served = lock(&self.served).get(&server).cloned();
        served.unwrap_or(Served::Made(ServedCertificate::Own))
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
