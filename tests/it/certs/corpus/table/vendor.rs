//! Certificates of other software, from vendor-certs.

use std::path::Path;

use talos_pki::Role;

use super::case;
use crate::certs::corpus::Case;
use crate::certs::corpus::make::Der;

pub(super) fn vendor_case(
    id: &'static str,
    chain: &str,
    trusted: &str,
    names: &[&str],
    findings: &[&'static str],
) -> Case {
    let trusted: Vec<Der> = vendor_file(trusted);
    Case {
        trusted,
        ..case(id, vendor_file(chain), names, findings)
    }
}

fn vendor_file(name: &str) -> Vec<Der> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vendor-certs");
    let text = std::fs::read_to_string(folder.join(format!("{name}.pem"))).unwrap();
    let certificates = talos_pki::Certificate::many_from_pem(text).unwrap();
    certificates
        .iter()
        .map(|certificate| certificate.der().to_vec())
        .collect()
}

pub(super) fn vendor() -> Vec<Case> {
    let client = |case: Case| case.for_role(Role::Client);
    vec![
        vendor_case(
            "vendor-apid",
            "talos-apid-controlplane",
            "talos-ca",
            &["10.5.0.2", "lab-cp-1", "127.0.0.1", "172.30.0.11"],
            &["name-missing 172.30.0.11"],
        ),
        vendor_case(
            "vendor-apid-next-day",
            "talos-apid-controlplane",
            "talos-ca",
            &["10.5.0.2"],
            &["expired"],
        )
        .at("2026-12-02T00:00:00Z"),
        vendor_case(
            "vendor-apid-worker",
            "talos-apid-worker",
            "talos-ca",
            &["lab-w-1", "lab-cp-1"],
            &["name-missing lab-cp-1"],
        ),
        vendor_case(
            "vendor-apid-maintenance",
            "talos-apid-maintenance",
            "talos-ca",
            &["::1"],
            &["unknown-authority"],
        ),
        client(vendor_case(
            "vendor-apid-client",
            "talos-apid-client-impersonator",
            "talos-ca",
            &[],
            &[],
        )),
        vendor_case(
            "vendor-apid-client-as-server",
            "talos-apid-client-impersonator",
            "talos-ca",
            &[],
            &["extended-key-usage"],
        ),
        vendor_case(
            "vendor-kube-apiserver",
            "talos-kube-apiserver",
            "talos-kubernetes-ca",
            &[
                "kubernetes.default.svc.cluster.local",
                "10.96.0.1",
                "kube-apiserver",
            ],
            &["name-missing kube-apiserver"],
        ),
        vendor_case(
            "vendor-kube-apiserver-below-etcd",
            "talos-kube-apiserver",
            "talos-etcd-ca",
            &["kubernetes"],
            &["unknown-authority"],
        ),
        client(vendor_case(
            "vendor-kubelet-client",
            "talos-apiserver-kubelet-client",
            "talos-kubernetes-ca",
            &[],
            &[],
        )),
        client(vendor_case(
            "vendor-front-proxy",
            "talos-front-proxy-client",
            "talos-aggregator-ca",
            &[],
            &[],
        )),
        vendor_case(
            "vendor-etcd-server",
            "talos-etcd-server",
            "talos-etcd-ca",
            &["10.5.0.2", "lab-cp-1"],
            &[],
        ),
        vendor_case(
            "vendor-etcd-peer",
            "talos-etcd-peer",
            "talos-etcd-ca",
            &["10.5.0.2"],
            &[],
        ),
        client(vendor_case(
            "vendor-etcd-peer-as-client",
            "talos-etcd-peer",
            "talos-etcd-ca",
            &[],
            &[],
        )),
        client(vendor_case(
            "vendor-etcd-client",
            "talos-etcd-client",
            "talos-etcd-ca",
            &[],
            &[],
        )),
        vendor_case(
            "vendor-self-made",
            "kube-apiserver-1.34-selfsigned",
            "kube-apiserver-1.34-selfsigned",
            &["192.0.2.2", "kubernetes", "localhost"],
            &["name-missing localhost"],
        ),
    ]
}
