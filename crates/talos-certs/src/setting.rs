//! The settings of a machine configuration that drive which names a certificate has.

use serde_json::{Value, json};
use talos_pki::Name;

use crate::ServerKind;

/// A list of names in the machine configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Drives apid and trustd, nothing else.
    MachineCertSans,
    /// Drives kube-apiserver.
    ApiServerCertSans,
    /// Drives kube-apiserver where the configuration uses the documents of Talos 1.14.
    ApiServerCertExtraSans,
}

impl Setting {
    /// Names the setting that drives a server's certificate, if any does.
    pub fn of(kind: ServerKind, has_apiserver_document: bool) -> Option<Self> {
        match kind {
            ServerKind::Apid | ServerKind::Trustd => Some(Self::MachineCertSans),
            ServerKind::KubeApiserver if has_apiserver_document => {
                Some(Self::ApiServerCertExtraSans)
            }
            ServerKind::KubeApiserver => Some(Self::ApiServerCertSans),
            ServerKind::Kubelet
            | ServerKind::Etcd
            | ServerKind::EtcdPeer
            // It passes on what the kube-apiserver of some control plane presents.
            | ServerKind::KubePrism
            | ServerKind::Other => None,
        }
    }

    /// Returns the path people know it by.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MachineCertSans => "machine.certSANs",
            Self::ApiServerCertSans => "cluster.apiServer.certSANs",
            Self::ApiServerCertExtraSans => "KubeAPIServerConfig: certExtraSANs",
        }
    }

    /// Says what a change of it costs, as seen on Talos 1.13.9.
    pub fn cost(self) -> &'static str {
        match self {
            Self::MachineCertSans => {
                "nothing restarts; the new certificate is served within seconds"
            }
            Self::ApiServerCertSans | Self::ApiServerCertExtraSans => {
                "the new certificate is served within seconds, then the node restarts its kube-apiserver, \
                 kube-controller-manager and kube-scheduler: patch one node at a time"
            }
        }
    }

    /// Writes a strategic merge patch that adds names; Talos appends to these lists, so what they hold stays.
    pub fn patch(self, names: &[&Name]) -> String {
        let names: Vec<Value> = names.iter().map(|name| json!(name.to_string())).collect();
        let patch = match self {
            Self::MachineCertSans => json!({"machine": {"certSANs": names}}),
            Self::ApiServerCertSans => json!({"cluster": {"apiServer": {"certSANs": names}}}),
            Self::ApiServerCertExtraSans => json!({
                "apiVersion": "v1alpha1",
                "kind": "KubeAPIServerConfig",
                "certExtraSANs": names,
            }),
        };
        patch.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_add_names_to_the_setting_of_the_server() {
        let names = [
            Name::parse("172.30.0.11").unwrap(),
            Name::parse("lb.example").unwrap(),
        ];
        let names: Vec<&Name> = names.iter().collect();
        let check = |kind, documents, setting: &str, patch: &str| {
            let chosen = Setting::of(kind, documents).unwrap();
            assert_eq!(chosen.as_str(), setting);
            assert_eq!(chosen.patch(&names), patch.replace('\'', "\""));
        };
        check(
            ServerKind::Apid,
            true,
            "machine.certSANs",
            "{'machine':{'certSANs':['172.30.0.11','lb.example']}}",
        );
        check(
            ServerKind::KubeApiserver,
            false,
            "cluster.apiServer.certSANs",
            "{'cluster':{'apiServer':{'certSANs':['172.30.0.11','lb.example']}}}",
        );
        check(
            ServerKind::KubeApiserver,
            true,
            "KubeAPIServerConfig: certExtraSANs",
            "{'apiVersion':'v1alpha1','kind':'KubeAPIServerConfig',\
             'certExtraSANs':['172.30.0.11','lb.example']}",
        );
    }
}
