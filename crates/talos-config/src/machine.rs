//! What programs need to know of a machine configuration, whichever documents say it.
//!
//! Up to Talos 1.13 the main document says everything about Kubernetes; a configuration of 1.14 may say it in documents
//! of their own, which come first here as they do there.

use serde_json::{Value, json};

use crate::Error;
use crate::facts::MAIN_KEYS;
use crate::patch::Patch;
use crate::yaml::read_documents;

/// A machine configuration, for reading.
#[derive(Clone)]
pub struct MachineConfig {
    documents: Vec<Value>,
}

/// Tells whether two texts are the same configuration, whatever their comments and layout.
///
/// One that was tried or staged and is not both active and persistent yet is told by this: Talos writes either text anew.
///
/// # Errors
///
/// If the texts differ and one of them is not YAML.
pub fn is_same(one: &str, other: &str) -> Result<bool, Error> {
    Ok(one == other || read_documents(one)? == read_documents(other)?)
}

/// What a machine is in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineType {
    /// A control plane node; the old type `init` is one too.
    ControlPlane,
    /// A worker.
    Worker,
}

/// A part of Kubernetes whose image the machine configuration names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Component {
    /// The static pod `kube-apiserver`.
    ApiServer,
    /// The static pod `kube-controller-manager`.
    ControllerManager,
    /// The static pod `kube-scheduler`.
    Scheduler,
    /// The DaemonSet `kube-proxy`.
    Proxy,
    /// The kubelet, a service of the machine.
    Kubelet,
}

impl Component {
    /// Returns the section and key of the main document that hold the component's settings.
    fn section(self) -> [&'static str; 2] {
        match self {
            Self::ApiServer => ["cluster", "apiServer"],
            Self::ControllerManager => ["cluster", "controllerManager"],
            Self::Scheduler => ["cluster", "scheduler"],
            Self::Proxy => ["cluster", "proxy"],
            Self::Kubelet => ["machine", "kubelet"],
        }
    }

    /// Returns the kind of document that Talos 1.14 has for the component.
    pub fn kind(self) -> &'static str {
        match self {
            Self::ApiServer => "KubeAPIServerConfig",
            Self::ControllerManager => "KubeControllerManagerConfig",
            Self::Scheduler => "KubeSchedulerConfig",
            Self::Proxy => "KubeProxyConfig",
            Self::Kubelet => "KubeletConfig",
        }
    }
}

impl MachineConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`] for a text that is not YAML or has a key twice in one mapping.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Ok(Self {
            documents: read_documents(text)?,
        })
    }

    /// Returns the main document, if there is one.
    pub fn main(&self) -> Option<&Value> {
        self.documents.iter().find(|document| {
            let mut keys = MAIN_KEYS.iter().chain(&["version"]);
            document.get("kind").is_none() && keys.any(|key| document.get(key).is_some())
        })
    }

    /// Returns the first document of a kind.
    pub fn document(&self, kind: &str) -> Option<&Value> {
        self.documents
            .iter()
            .find(|document| document["kind"] == kind)
    }

    /// Returns all documents in order.
    pub fn documents(&self) -> &[Value] {
        &self.documents
    }

    /// Returns what the machine is; an empty type and `join` are workers, as for Talos.
    pub fn machine_type(&self) -> Option<MachineType> {
        let of = self
            .main()?
            .get("machine")?
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match of {
            "controlplane" | "init" => Some(MachineType::ControlPlane),
            "worker" | "join" | "" => Some(MachineType::Worker),
            _ => None,
        }
    }

    /// Returns the name of the cluster.
    pub fn cluster_name(&self) -> Option<&str> {
        self.text("KubeClusterConfig", "/clusterName")
            .or_else(|| self.main_text("/cluster/clusterName"))
    }

    /// Returns the URL of the Kubernetes API as the cluster's machines use it.
    pub fn cluster_endpoint(&self) -> Option<&str> {
        self.text("KubeClusterConfig", "/endpoint")
            .or_else(|| self.main_text("/cluster/controlPlane/endpoint"))
    }

    /// Returns the names and addresses that the machine's own API has to be valid for: `machine.certSANs`.
    pub fn cert_sans(&self) -> Vec<&str> {
        strings(
            self.main()
                .and_then(|main| main.pointer("/machine/certSANs")),
        )
    }

    /// Returns the names and addresses that the Kubernetes API server has to be valid for.
    pub fn api_server_cert_sans(&self) -> Vec<&str> {
        let own = strings(
            self.document("KubeAPIServerConfig")
                .and_then(|document| document.get("certExtraSANs")),
        );
        let main = strings(
            self.main()
                .and_then(|main| main.pointer("/cluster/apiServer/certSANs")),
        );
        own.into_iter().chain(main).collect()
    }

    /// Returns the path of the setting that adds a name to the API server's certificate.
    pub fn api_server_cert_sans_path(&self) -> &'static str {
        match self.document("KubeAPIServerConfig") {
            Some(_) => "KubeAPIServerConfig: certExtraSANs",
            None => "cluster.apiServer.certSANs",
        }
    }

    /// Returns the image that the configuration names for a component; absent if Talos chooses it.
    pub fn image(&self, component: Component) -> Option<&str> {
        let [section, key] = component.section();
        self.text(component.kind(), "/image")
            .or_else(|| self.main_text(&format!("/{section}/{key}/image")))
    }

    /// Returns whether kube-proxy is switched off.
    pub fn is_proxy_disabled(&self) -> bool {
        let own = self
            .document("KubeProxyConfig")
            .and_then(|document| document.get("enabled"));
        let main = self
            .main()
            .and_then(|main| main.pointer("/cluster/proxy/disabled"));
        own == Some(&Value::Bool(false)) || main == Some(&Value::Bool(true))
    }

    /// Returns the patch that sets the image of a component where this configuration has it.
    pub fn image_patch(&self, component: Component, image: &str) -> Patch {
        let [section, key] = component.section();
        let document = match self.document(component.kind()) {
            Some(_) => json!({"apiVersion": "v1alpha1", "kind": component.kind(), "image": image}),
            None => json!({section: {key: {"image": image}}}),
        };
        Patch::strategic(document)
    }

    fn text(&self, kind: &str, pointer: &str) -> Option<&str> {
        non_empty(self.document(kind)?.pointer(pointer))
    }

    fn main_text(&self, pointer: &str) -> Option<&str> {
        non_empty(self.main()?.pointer(pointer))
    }
}

impl std::fmt::Debug for MachineConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MachineConfig of {} documents", self.documents.len())
    }
}

fn non_empty(value: Option<&Value>) -> Option<&str> {
    value?.as_str().filter(|text| !text.is_empty())
}

fn strings(value: Option<&Value>) -> Vec<&str> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;
    use crate::patch::apply;

    const OLD: &str = "version: v1alpha1\nmachine:\n  type: init\n  certSANs: [10.5.0.2]\n  kubelet: {image: k:v1}\ncluster:\n  clusterName: c\n  controlPlane: {endpoint: \"https://h:6443\"}\n  apiServer: {image: \"a:v1\", certSANs: [127.0.0.1]}\n  proxy: {disabled: true}\n";
    const NEW: &str = "version: v1alpha1\nmachine: {type: worker}\n---\napiVersion: v1alpha1\nkind: KubeClusterConfig\nclusterName: d\nendpoint: https://i:6443\n---\napiVersion: v1alpha1\nkind: KubeAPIServerConfig\nimage: a:v2\ncertExtraSANs: [e]\n";

    #[test]
    fn comments_and_layout_make_no_other_configuration() {
        assert!(is_same("a: 1 # one\nb: [c]\n", "a: 1\nb:\n    - c\n").unwrap());
        assert!(!is_same("a: 1\n", "a: 2\n").unwrap());
        assert!(is_same("a: [", "a: [").unwrap());
        assert!(is_same("a: [", "a: 1").is_err());
    }

    #[test]
    fn settings_are_found_in_either_form() {
        let old = MachineConfig::parse(OLD).unwrap();
        assert_eq!(old.machine_type(), Some(MachineType::ControlPlane));
        assert_eq!(
            (old.cluster_name(), old.cluster_endpoint()),
            (Some("c"), Some("https://h:6443"))
        );
        assert_eq!(
            (old.cert_sans(), old.api_server_cert_sans()),
            (vec!["10.5.0.2"], vec!["127.0.0.1"])
        );
        assert_eq!(
            (
                old.image(Component::Kubelet),
                old.image(Component::Scheduler)
            ),
            (Some("k:v1"), None)
        );
        assert!(old.is_proxy_disabled());
        let new = MachineConfig::parse(NEW).unwrap();
        assert_eq!(new.machine_type(), Some(MachineType::Worker));
        assert_eq!(
            (new.cluster_name(), new.cluster_endpoint()),
            (Some("d"), Some("https://i:6443"))
        );
        assert_eq!(
            (new.cert_sans(), new.api_server_cert_sans()),
            (vec![], vec!["e"])
        );
        assert_eq!(
            (new.image(Component::ApiServer), new.is_proxy_disabled()),
            (Some("a:v2"), false)
        );
    }

    #[test]
    fn an_image_is_set_where_it_stands() {
        for (text, version, from, to) in
            [(OLD, "1.13", "a:v1", "a:v9"), (NEW, "1.14", "a:v2", "a:v9")]
        {
            let config = MachineConfig::parse(text).unwrap();
            let patch = config.image_patch(Component::ApiServer, to);
            let patched = apply(text, &[patch], Schema::for_talos(version)).unwrap();
            assert_eq!(patched.text, text.replace(from, to));
        }
    }
}
