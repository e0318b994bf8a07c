use super::*;
use crate::evidence::{Kept, Seen};
use crate::{ServerKind, read_file};

/// Certificates of one real cluster, as vendor-certs has them.
fn chain(file: &str) -> Vec<Certificate> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vendor-certs");
    let text = std::fs::read(format!("{folder}/{file}.pem")).unwrap();
    Certificate::many_from_pem(text).unwrap()
}

fn noon() -> Timestamp {
    "2026-11-30T16:00:00Z".parse().unwrap()
}

fn seen(kind: ServerKind, file: &str) -> Seen {
    Seen {
        node: "10.5.0.2".to_owned(),
        kind,
        source: Source::Served,
        address: Some("10.5.0.2:1".to_owned()),
        connection: None,
        chain: chain(file),
        reached_as: Vec::new(),
    }
}

fn resource(kind: &str, field: &str, purpose: &str, file: &str) -> Kept {
    Kept {
        node: Some("10.5.0.2".to_owned()),
        place: Place::Resource {
            kind: format!("{kind}.secrets.talos.dev"),
            id: "id".to_owned(),
            field: field.to_owned(),
        },
        purpose: purpose.to_owned(),
        certificate: chain(file).remove(0),
        manager: None,
    }
}

fn cluster() -> Evidence {
    Evidence {
        servers: vec![
            seen(ServerKind::Apid, "talos-apid-controlplane"),
            seen(ServerKind::KubeApiserver, "talos-kube-apiserver"),
            seen(ServerKind::KubePrism, "talos-kube-apiserver"),
            seen(ServerKind::Etcd, "talos-etcd-server"),
            seen(ServerKind::Kubelet, "kube-apiserver-1.34-selfsigned"),
        ],
        kept: vec![
            resource(
                "ApiCertificates",
                "/server/crt",
                "apid",
                "talos-apid-controlplane",
            ),
            resource(
                "OSRootSecrets",
                "/acceptedCAs/0/crt",
                "accepted Talos CA",
                "talos-ca",
            ),
            resource("OSRootSecrets", "/issuingCA/crt", "Talos CA", "talos-ca"),
            resource(
                "KubernetesRootSecrets",
                "/issuingCA/crt",
                "Kubernetes CA",
                "talos-kubernetes-ca",
            ),
            resource(
                "KubernetesRootSecrets",
                "/aggregatorCA/crt",
                "aggregator CA",
                "talos-aggregator-ca",
            ),
            resource(
                "KubernetesDynamicCerts",
                "/frontProxy/crt",
                "front proxy client",
                "talos-front-proxy-client",
            ),
            resource("EtcdRootSecrets", "/etcdCA/crt", "etcd CA", "talos-etcd-ca"),
        ],
        ..Evidence::default()
    }
}

fn find<'a>(inventory: &'a Inventory, purpose: &str) -> &'a Listed {
    let mut found = inventory
        .certificates
        .iter()
        .filter(|listed| listed.purpose == purpose);
    let listed = found.next().unwrap_or_else(|| panic!("{purpose}"));
    assert!(found.next().is_none(), "{purpose} is listed twice");
    listed
}

#[test]
fn a_certificate_of_several_places_is_listed_once_and_the_first_to_end_comes_first() {
    let inventory = list(&cluster(), noon());
    assert_eq!(inventory.certificates[0].purpose, "apid");
    let ends = inventory.certificates.iter();
    let ends: Vec<i64> = ends.map(|listed| listed.seconds_left).collect();
    assert!(ends.is_sorted());
    let places = |purpose: &str| find(&inventory, purpose).places.len();
    assert_eq!(places("apid"), 2);
    assert_eq!(places("kube-apiserver"), 2);
    assert_eq!(places("Talos CA"), 2);
    let apid = find(&inventory, "apid");
    assert_eq!(
        (apid.places[0].source, apid.places[1].source),
        (InventorySource::Servers, InventorySource::Resources)
    );
}

#[test]
fn issuers_are_told_by_key_and_signature_where_names_are_empty() {
    let inventory = list(&cluster(), noon());
    let check = |purpose: &str, expected: Option<&str>| {
        let listed = find(&inventory, purpose);
        let name = listed.issued_by.as_ref().map(|issuer| issuer.name.as_str());
        assert_eq!(name, expected, "{purpose}");
    };
    check("apid", Some("Talos CA"));
    check("kube-apiserver", Some("Kubernetes CA"));
    check("front proxy client", Some("aggregator CA"));
    check("etcd", Some("etcd CA"));
    check("kubelet", Some("CA sent by kubelet"));
    check("aggregator CA", Some("itself"));
    // Another authority has the same empty name.
    let mut evidence = cluster();
    evidence.kept.retain(|kept| kept.purpose != "aggregator CA");
    let inventory = list(&evidence, noon());
    assert_eq!(find(&inventory, "front proxy client").issued_by, None);
}

#[test]
fn who_renews_depends_on_the_place() {
    let mut evidence = cluster();
    let secret = |manager: Option<&str>, file: &str| Kept {
        node: None,
        place: Place::Kubernetes {
            kind: "Secret".to_owned(),
            namespace: "web".to_owned(),
            name: "tls".to_owned(),
            field: "tls.crt".to_owned(),
        },
        purpose: "TLS Secret".to_owned(),
        certificate: chain(file).remove(0),
        manager: manager.map(str::to_owned),
    };
    evidence.kept.push(secret(
        Some("cert-manager (Certificate web)"),
        "talos-etcd-peer",
    ));
    let inventory = list(&evidence, noon());
    let check = |purpose: &str, by: &str, at: Option<&str>| {
        let renewal = &find(&inventory, purpose).renewal;
        assert_eq!(
            (renewal.by.as_str(), renewal.at.as_deref()),
            (by, at),
            "{purpose}"
        );
    };
    let half = |purpose: &str| {
        let certificate = &find(&inventory, purpose).certificate;
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let (begin, end) = (time(&certificate.not_before), time(&certificate.not_after));
        Timestamp::from_second((begin.as_second() + end.as_second()) / 2)
            .unwrap()
            .to_string()
    };
    check("apid", "Talos", Some(&half("apid")));
    check("kube-apiserver", "Talos", Some(&half("kube-apiserver")));
    check(
        "front proxy client",
        "Talos",
        Some(&half("front proxy client")),
    );
    check("etcd", "Talos", None);
    check("kubelet", "nobody", None);
    check("Talos CA", "nobody", None);
    check("TLS Secret", "cert-manager (Certificate web)", None);
}

#[test]
fn only_what_ends_soon_is_kept() {
    let mut inventory = list(&cluster(), noon());
    inventory.keep_expiring(SignedDuration::from_hours(30 * 24));
    let purposes = inventory.certificates.iter();
    let purposes: Vec<&str> = purposes.map(|listed| listed.purpose.as_str()).collect();
    assert_eq!(purposes, ["apid"]);
    let year = SignedDuration::from_hours(366 * 24);
    let later = noon() + year;
    let mut inventory = list(&cluster(), later);
    assert_eq!(find(&inventory, "apid").validity, Validity::Expired);
    inventory.keep_expiring(SignedDuration::ZERO);
    assert!(
        inventory
            .certificates
            .iter()
            .all(|listed| listed.seconds_left <= 0),
        "what has ended is what has to be seen first"
    );
    let before = list(&cluster(), noon() - year);
    assert_eq!(find(&before, "apid").validity, Validity::NotYetValid);
}

#[test]
fn the_certificate_of_a_file_is_nobodys_to_renew() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vendor-certs");
    let bytes = std::fs::read(format!("{folder}/talos-kube-apiserver.pem")).unwrap();
    let evidence = Evidence {
        kept: read_file("server.pem", &bytes).kept,
        ..Evidence::default()
    };
    let inventory = list(&evidence, noon());
    let listed = find(&inventory, "server");
    assert_eq!(listed.renewal.by, "nobody");
    assert_eq!(listed.places[0].place, "server.pem");
    assert_eq!(listed.issued_by, None);
}
