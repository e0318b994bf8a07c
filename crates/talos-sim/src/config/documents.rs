//! Reads the documents of a machine configuration.

use std::fmt;
use std::net::IpAddr;

use serde_json::Value;

use crate::node::MachineType;

/// Top-level keys that make a document the main one.
const MAIN_KEYS: [&str; 4] = ["machine", "cluster", "debug", "persist"];

/// The documents of one machine configuration, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Documents(pub(crate) Vec<Document>);

/// One document.
#[derive(Clone, PartialEq)]
pub(crate) struct Document {
    /// Line of the text where the document's content starts, from 1.
    pub(crate) line: usize,
    /// `apiVersion`; empty for the main document.
    pub(crate) api_version: String,
    /// `kind`; empty for the main document.
    pub(crate) kind: String,
    /// `name`, empty for kinds without one.
    pub(crate) name: String,
    /// The content, always a mapping.
    pub(crate) value: Value,
}

/// Documents hold keys, so only what they are is shown.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("line", &self.line)
            .field("kind", &self.kind)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Why a text is not a machine configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Unreadable {
    /// The text has no document.
    Empty,
    /// The text is not YAML.
    Syntax { line: usize, problem: String },
    /// A document is not a mapping.
    NotMapping { line: usize },
    /// A document does not say what it is.
    MissingKind { api_version: String, line: usize },
    /// A document has a kind and no version.
    MissingApiVersion { kind: String, line: usize },
}

impl Documents {
    /// Reads a text without looking at which keys it has.
    pub(crate) fn read(text: &str) -> Result<Self, Unreadable> {
        let mut documents = Vec::new();
        for (line, part) in split(text) {
            let value = parse(&part).map_err(|problem| Unreadable::Syntax { line, problem })?;
            match value {
                Value::Null => {}
                Value::Object(_) => documents.push(Document::identify(line, value)?),
                _ => return Err(Unreadable::NotMapping { line }),
            }
        }
        if documents.is_empty() {
            Err(Unreadable::Empty)
        } else {
            Ok(Self(documents))
        }
    }

    /// The main document, if there is one.
    pub(crate) fn main(&self) -> Option<&Value> {
        self.0
            .iter()
            .find(|document| document.kind.is_empty())
            .map(|document| &document.value)
    }

    /// The first document of a kind.
    pub(crate) fn of_kind(&self, kind: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|document| document.kind == kind)
            .map(|document| &document.value)
    }

    /// A value of the main document by a JSON pointer such as `/cluster/apiServer/image`.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Value> {
        self.main()?
            .pointer(pointer)
            .filter(|value| !value.is_null())
    }

    /// What this configuration makes of a machine.
    pub(crate) fn machine_type(&self) -> MachineType {
        match self
            .main()
            .map(|main| main.pointer("/machine/type").and_then(Value::as_str))
        {
            None => MachineType::Unknown,
            Some(Some("controlplane" | "init")) => MachineType::ControlPlane,
            Some(_) => MachineType::Worker,
        }
    }

    /// `machine.certSANs`.
    pub(crate) fn machine_cert_sans(&self) -> Vec<String> {
        strings(self.at("/machine/certSANs"))
    }

    /// `cluster.apiServer.certSANs`, or the same in a document of its own.
    pub(crate) fn api_server_cert_sans(&self) -> Vec<String> {
        let own = self
            .of_kind("KubeAPIServerConfig")
            .and_then(|value| value.get("certExtraSANs"));
        strings(own.or_else(|| self.at("/cluster/apiServer/certSANs")))
    }

    /// The image of `apiServer`, `controllerManager`, `scheduler` or `proxy`, where one is set.
    pub(crate) fn image(&self, component: &str) -> Option<&str> {
        let kind = match component {
            "apiServer" => "KubeAPIServerConfig",
            "controllerManager" => "KubeControllerManagerConfig",
            "scheduler" => "KubeSchedulerConfig",
            _ => "KubeProxyConfig",
        };
        let own = self.of_kind(kind).and_then(|value| value.get("image"));
        own.or_else(|| self.at(&format!("/cluster/{component}/image")))?
            .as_str()
    }

    /// The kubelet's image, where one is set.
    pub(crate) fn kubelet_image(&self) -> Option<&str> {
        let own = self
            .of_kind("KubeletConfig")
            .and_then(|value| value.get("image"));
        own.or_else(|| self.at("/machine/kubelet/image"))?.as_str()
    }

    /// Whether the kubelet has its serving certificate signed by the cluster's authority.
    pub(crate) fn rotates_kubelet_server_certificate(&self) -> bool {
        let own = self.of_kind("KubeletConfig");
        let setting = |document: &str, main: &str| {
            let own = own.and_then(|config| config.pointer(document));
            own.or_else(|| self.at(main)).cloned().unwrap_or_default()
        };
        let argument = setting(
            "/extraArgs/rotate-server-certificates",
            "/machine/kubelet/extraArgs/rotate-server-certificates",
        );
        let argument = argument
            .as_array()
            .and_then(|list| list.last())
            .unwrap_or(&argument);
        let bootstrap = setting(
            "/extraConfig/serverTLSBootstrap",
            "/machine/kubelet/extraConfig/serverTLSBootstrap",
        );
        *argument == "true" || *argument == true || bootstrap == true
    }

    /// The first time server.
    pub(crate) fn time_server(&self) -> Option<String> {
        let own = self.of_kind("TimeSyncConfig");
        let own = own.and_then(|value| value.pointer("/ntp/servers"));
        let servers = strings(own.or_else(|| self.at("/machine/time/servers")));
        servers.into_iter().next()
    }

    /// `cluster.adminKubeconfig.certLifetime`, as it is written.
    pub(crate) fn admin_kubeconfig_lifetime(&self) -> Option<&str> {
        self.at("/cluster/adminKubeconfig/certLifetime")?.as_str()
    }

    /// `cluster.controlPlane.endpoint`, or the same in a document of its own.
    pub(crate) fn endpoint(&self) -> Option<&str> {
        let own = self
            .of_kind("KubeClusterConfig")
            .and_then(|value| value.get("endpoint"));
        own.or_else(|| self.at("/cluster/controlPlane/endpoint"))?
            .as_str()
    }

    /// First address of the first service subnet, such as `10.96.0.1`.
    pub(crate) fn service_address(&self) -> Option<IpAddr> {
        let own = self
            .of_kind("KubeNetworkConfig")
            .and_then(|value| value.get("serviceSubnets"));
        let subnets = strings(own.or_else(|| self.at("/cluster/network/serviceSubnets")));
        let subnet = subnets.first().map_or("10.96.0.0/12", String::as_str);
        match subnet.split('/').next()?.parse().ok()? {
            IpAddr::V4(base) => Some(IpAddr::V4((u32::from(base) + 1).into())),
            IpAddr::V6(base) => Some(IpAddr::V6((u128::from(base) + 1).into())),
        }
    }
}

impl Document {
    fn identify(line: usize, value: Value) -> Result<Self, Unreadable> {
        let text = |key: &str| {
            let found = value.get(key).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let (api_version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
        if kind.is_empty() {
            let is_main = MAIN_KEYS.iter().any(|key| value.get(key).is_some());
            if !is_main {
                let api_version = if api_version.is_empty() {
                    text("version")
                } else {
                    api_version
                };
                return Err(Unreadable::MissingKind { api_version, line });
            }
            let (api_version, name) = (String::new(), String::new());
            return Ok(Self {
                line,
                api_version,
                kind,
                name,
                value,
            });
        }
        if api_version.is_empty() {
            return Err(Unreadable::MissingApiVersion { kind, line });
        }
        Ok(Self {
            line,
            api_version,
            kind,
            name,
            value,
        })
    }
}

/// Parses one YAML document the way Talos reads it.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

/// Splits a stream at its `---` lines; each part comes with the line where its content starts.
fn split(text: &str) -> Vec<(usize, String)> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut first = 1;
    let mut has_content = false;
    for (index, line) in text.lines().enumerate() {
        if line == "---" || line.starts_with("--- ") {
            if has_content {
                parts.push((first, std::mem::take(&mut part)));
            }
            part.clear();
            has_content = false;
            if let Some(rest) = line.strip_prefix("--- ") {
                part.push_str(rest);
                part.push('\n');
                first = index + 1;
                has_content = is_content(rest);
            }
            continue;
        }
        if !has_content && is_content(line) {
            has_content = true;
            first = index + 1;
        }
        part.push_str(line);
        part.push('\n');
    }
    if has_content {
        parts.push((first, part));
    }
    parts
}

fn is_content(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_styles_of_configuration_say_the_same() {
        let main = "
machine:
    type: controlplane
    kubelet: {image: kubelet:v1}
cluster:
    controlPlane: {endpoint: https://10.5.0.2:6443}
    network: {serviceSubnets: [10.96.0.0/12]}
    apiServer: {image: kube-apiserver:v1, certSANs: [a.example.com]}
    scheduler: {image: kube-scheduler:v1}
";
        let documents = "
machine: {type: controlplane}
---
apiVersion: v1alpha1
kind: KubeClusterConfig
endpoint: https://10.5.0.2:6443
---
apiVersion: v1alpha1
kind: KubeNetworkConfig
serviceSubnets: [10.96.0.0/12]
---
apiVersion: v1alpha1
kind: KubeAPIServerConfig
image: kube-apiserver:v1
certExtraSANs: [a.example.com]
---
apiVersion: v1alpha1
kind: KubeSchedulerConfig
image: kube-scheduler:v1
--- # the kubelet
apiVersion: v1alpha1
kind: KubeletConfig
image: kubelet:v1
";
        for text in [main, documents] {
            let read = Documents::read(text).unwrap();
            assert_eq!(read.machine_type(), MachineType::ControlPlane);
            assert_eq!(read.endpoint(), Some("https://10.5.0.2:6443"));
            assert_eq!(read.service_address(), "10.96.0.1".parse().ok());
            assert_eq!(read.image("apiServer"), Some("kube-apiserver:v1"));
            assert_eq!(read.image("scheduler"), Some("kube-scheduler:v1"));
            assert_eq!(read.image("controllerManager"), None);
            assert_eq!(read.kubelet_image(), Some("kubelet:v1"));
            assert_eq!(read.api_server_cert_sans(), ["a.example.com"]);
        }
    }

    #[test]
    fn documents_know_the_line_where_they_start() {
        let text = "# head\nmachine: {}\n---\n\n# more\napiVersion: v1alpha1\nkind: A\n---\n";
        let lines: Vec<usize> = Documents::read(text)
            .unwrap()
            .0
            .iter()
            .map(|d| d.line)
            .collect();
        assert_eq!(lines, [2, 6]);
        let problem = Documents::read("machine: {}\n---\n- a\n").unwrap_err();
        assert_eq!(problem, Unreadable::NotMapping { line: 3 });
        let problem = Documents::read("kind: A\n").unwrap_err();
        assert_eq!(
            problem,
            Unreadable::MissingApiVersion {
                kind: "A".to_owned(),
                line: 1
            }
        );
    }
}
