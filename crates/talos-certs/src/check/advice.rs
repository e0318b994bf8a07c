//! What to do where no setting repairs a problem: Talos renews its servers' certificates by itself.

use talos_pki::FindingCode;

use crate::ServerKind;

pub(super) const ALREADY_SET: &str =
    "the name is asked for already; the node has to issue the certificate anew: see not-served-yet";
pub(super) const NOT_SERVED_YET: &str = "the node issues it anew within seconds once its time is synchronised: look at \
     `ichor get timestatus` and at the controller-runtime log";
pub(super) const UNEXPECTED: &str = "no setting holds it: nodes put every address that they had since they booted into \
     their certificates, so a reboot after the address is gone takes it out; a name that is right is told by --expect";
pub(super) const CLOCK: &str =
    "set the clock that is wrong; for the node's see machine.time and `ichor get timestatus`";
pub(super) const RENEW_CLIENT: &str = "nobody renews it: get a new one with `ichor certs renew`, from an administrator, or from \
     the cluster's secrets";
pub(super) const ROLE: &str =
    "get a certificate with the role it takes, such as os:reader to look and os:admin to change";
pub(super) const MAINTENANCE: &str = "the node is in maintenance mode: it has no configuration yet, or lost it; talk to it with \
     --insecure, and give it one with `ichor apply-config --insecure -f FILE`";
pub(super) const UPDATE_TRUST: &str = "the authority was rotated, or the file belongs to another cluster: get a new file \
     with `ichor certs renew`, or from an administrator";
pub(super) const MIXED_UP_TRUST: &str =
    "the talosconfig has the Talos CA, the kubeconfig the Kubernetes CA: they were mixed up";

/// Says what to do about a name that is missing where no setting adds it.
pub(super) fn of_missing_name(kind: ServerKind) -> Option<&'static str> {
    match kind {
        ServerKind::Kubelet => Some(
            "no certSANs setting changes the kubelet's certificate: its names are the node's name and addresses, \
             and with rotate-server-certificates those of the request that was approved",
        ),
        ServerKind::Etcd | ServerKind::EtcdPeer => Some(
            "no certSANs setting changes etcd's certificates: their names are the node's name and addresses",
        ),
        ServerKind::Other => Some("this server is not one of Talos: its own settings decide"),
        ServerKind::KubePrism => Some(
            "KubePrism passes on what a kube-apiserver presents: the name is to be added to the kube-apiservers of all \
             control planes",
        ),
        ServerKind::Apid | ServerKind::Trustd | ServerKind::KubeApiserver => None,
    }
}

/// Says what to do about any other problem of a server.
pub(super) fn of_server(kind: ServerKind, code: FindingCode) -> Option<&'static str> {
    match (code, kind) {
        (FindingCode::Expired | FindingCode::Expiring, ServerKind::Apid | ServerKind::Trustd) => {
            Some(
                "the node renews it by itself every 12 hours: look at its clock and at the trustd and apid services",
            )
        }
        (
            FindingCode::Expired | FindingCode::Expiring,
            ServerKind::KubeApiserver | ServerKind::KubePrism,
        ) => Some(
            "the node renews it by itself every 6 months: look at its clock and at the controller-runtime log",
        ),
        (FindingCode::Expired | FindingCode::Expiring, ServerKind::Etcd | ServerKind::EtcdPeer) => {
            Some("no timer renews it: the node issues it anew when its name or an address changes")
        }
        (FindingCode::Expired | FindingCode::Expiring, ServerKind::Kubelet) => {
            Some("the kubelet makes a new one when it starts")
        }
        (FindingCode::NotYetValid, _) => Some("compare the clocks of the node and of this machine"),
        (FindingCode::UnknownAuthority, ServerKind::Apid | ServerKind::Trustd) => {
            Some("the talosconfig belongs to another cluster, or the Talos CA was rotated")
        }
        (FindingCode::UnknownAuthority, ServerKind::KubeApiserver | ServerKind::KubePrism) => {
            Some("the kubeconfig belongs to another cluster, or the Kubernetes CA was rotated")
        }
        (FindingCode::WrongAuthority, _) => Some(
            "authorities were mixed up: machine.ca signs for Talos, cluster.ca for Kubernetes, cluster.etcd.ca for etcd",
        ),
        (FindingCode::AuthorityExpired, _) => Some("rotate the certificate authority"),
        _ => None,
    }
}
