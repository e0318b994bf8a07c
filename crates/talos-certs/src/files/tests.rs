use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use talos_pki::{Authority, AuthorityKind};

use super::*;

fn vendored(file: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vendor-certs");
    std::fs::read_to_string(format!("{folder}/{file}.pem")).unwrap()
}

fn encoded(file: &str) -> String {
    STANDARD.encode(vendored(file))
}

/// Lists `part: purpose` of every certificate.
fn lines(contents: &FileContents) -> Vec<String> {
    let line = |kept: &Kept| match &kept.place {
        Place::File { part, .. } => format!("{part}: {}", kept.purpose),
        other => panic!("{other}"),
    };
    contents.kept.iter().map(line).collect()
}

fn check(text: &str, kind: FileKind, expected: &[&str]) {
    let contents = read_file("file", text.as_bytes());
    assert_eq!(contents.kind, Some(kind), "{text}");
    assert_eq!(lines(&contents), expected, "{text}");
    assert_eq!(contents.problems, [], "{text}");
}

#[test]
fn every_kind_of_file_is_told_by_what_it_holds() {
    let (talos, kubernetes) = (encoded("talos-ca"), encoded("talos-kubernetes-ca"));
    let (etcd, aggregator) = (encoded("talos-etcd-ca"), encoded("talos-aggregator-ca"));
    let client = encoded("talos-apid-client-impersonator");
    check(
        &format!(
            "context: a\ncontexts:\n  a: {{endpoints: [], ca: {talos}, crt: {client}, key: c2VjcmV0}}\n"
        ),
        FileKind::Talosconfig,
        &[
            "context \"a\": Talos CA",
            "context \"a\": client of apid (os:impersonator)",
        ],
    );
    check(
        &format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: lab\n  cluster: {{server: 'https://a', \
             certificate-authority-data: {kubernetes}}}\nusers:\n- name: admin\n  user: {{client-certificate-data: {client}}}\n\
             contexts: []\n"
        ),
        FileKind::Kubeconfig,
        &[
            "cluster \"lab\": Kubernetes CA",
            "user \"admin\": client of kube-apiserver",
        ],
    );
    let roots = vendored("talos-etcd-ca").replace('\n', "\n  ");
    check(
        &format!(
            "machine:\n  type: controlplane\n  ca: {{crt: {talos}, key: ''}}\n  acceptedCAs: [{{crt: {etcd}}}]\n\
             cluster:\n  ca: {{crt: {kubernetes}}}\n  aggregatorCA: {{crt: {aggregator}}}\n  etcd: {{ca: {{crt: {etcd}}}}}\n\
             ---\napiVersion: v1alpha1\nkind: TrustedRootsConfig\nname: own\ncertificates: |\n  {roots}\n"
        ),
        FileKind::MachineConfig,
        &[
            "machine.ca: Talos CA",
            "machine.acceptedCAs.0: accepted Talos CA",
            "cluster.ca: Kubernetes CA",
            "cluster.aggregatorCA: aggregator CA",
            "cluster.etcd.ca: etcd CA",
            "TrustedRootsConfig \"own\": certificates: trusted root",
        ],
    );
    check(
        &format!(
            "cluster: {{id: a}}\ncerts:\n  etcd: {{crt: {etcd}}}\n  k8s: {{crt: {kubernetes}}}\n  \
             k8saggregator: {{crt: {aggregator}}}\n  os: {{crt: {talos}}}\n"
        ),
        FileKind::SecretsBundle,
        &[
            "certs.etcd: etcd CA",
            "certs.k8s: Kubernetes CA",
            "certs.k8saggregator: aggregator CA",
            "certs.os: Talos CA",
        ],
    );
    check(
        &format!(
            "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {{name: web}}\ndata: {{tls.crt: {client}}}\n"
        ),
        FileKind::Manifest,
        &["Secret \"web\": data.tls.crt: TLS Secret"],
    );
    check(
        &vendored("talos-kube-apiserver"),
        FileKind::Pem,
        &[": server"],
    );
    check(
        &vendored("kube-apiserver-1.34-selfsigned").replace('\n', "\r\n"),
        FileKind::Pem,
        &[": server", ": certificate authority"],
    );
}

#[test]
fn der_is_one_certificate() {
    let pem = vendored("talos-ca");
    let certificate = Certificate::many_from_pem(pem).unwrap().remove(0);
    let contents = read_file("ca.der", certificate.der());
    assert_eq!(contents.kind, Some(FileKind::Der));
    assert_eq!(contents.kept[0].certificate, certificate);
}

#[test]
fn a_kubeconfig_names_the_files_beside_it() {
    let text = "kind: Config\nclusters:\n- name: lab\n  cluster: {certificate-authority: ca.pem}\n\
                users:\n- name: admin\n  user: {client-certificate: pki/admin.pem}\n";
    let contents = read_file("kubeconfig", text.as_bytes());
    let named: Vec<(&str, &str)> = contents
        .references
        .iter()
        .map(|reference| (reference.part.as_str(), reference.path.as_str()))
        .collect();
    assert_eq!(
        named,
        [
            ("cluster \"lab\"", "ca.pem"),
            ("user \"admin\"", "pki/admin.pem")
        ]
    );
}

#[test]
fn a_damaged_certificate_does_not_hide_the_others() {
    let good = vendored("talos-ca");
    let truncated = good.replace("-----END CERTIFICATE-----\n", "");
    let damaged = "-----BEGIN CERTIFICATE-----\nMAIwAA==\n-----END CERTIFICATE-----\n";
    let text = format!(
        "{good}{damaged}{truncated}{good}-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"
    );
    let contents = read_file("all.pem", text.as_bytes());
    assert_eq!(contents.kept.len(), 2);
    let problems: Vec<&str> = contents
        .problems
        .iter()
        .map(|problem| problem.why.as_str())
        .collect();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems[0].starts_with("certificate 2 cannot be read: "));
    assert_eq!(contents.problems[0].der, [0x30, 2, 0x30, 0]);
    let line = good.lines().count() + 4;
    assert_eq!(
        problems[1],
        format!("certificate 3 (line {line}) is cut off: it has no end line")
    );
    assert!(problems[2].contains("is not valid base64"), "{problems:?}");
}

#[test]
fn what_holds_no_certificate_says_so() {
    let check = |bytes: &[u8], kind, why: &str| {
        let contents = read_file("file", bytes);
        assert_eq!(contents.kind, kind);
        assert!(contents.kept.is_empty());
        assert_eq!(contents.problems[0].why, why);
    };
    check(b"", None, "it holds no certificate");
    check(b"hello\n", None, "it holds no certificate");
    check(&[0xff, 0xfe], None, "it holds no certificate");
    check(b"a: 1\n", Some(FileKind::Yaml), "it holds no certificate");
    let key = Authority::generate(AuthorityKind::Talos, Timestamp::UNIX_EPOCH).unwrap();
    let key = key.key().pem();
    check(
        key.as_bytes(),
        Some(FileKind::Pem),
        "it holds no certificate",
    );
    check(
        b"machine: {ca: {crt: nonsense}}\n",
        Some(FileKind::MachineConfig),
        "this is neither PEM nor base64 of it",
    );
}

#[test]
fn many_damaged_certificates_are_not_all_told() {
    let damaged = "-----BEGIN CERTIFICATE-----\nMAIwAA==\n-----END CERTIFICATE-----\n";
    let contents = read_file("all.pem", damaged.repeat(10_000).as_bytes());
    assert_eq!(contents.problems.len(), 21);
}

#[test]
fn nothing_of_a_private_key_is_kept_wherever_a_certificate_belongs() {
    let key = Authority::generate(AuthorityKind::Kubernetes, Timestamp::UNIX_EPOCH).unwrap();
    let pkcs8 = key.key().pkcs8_der().to_vec();
    let text = STANDARD.encode(&pkcs8);
    let wrapped = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
    let swapped = format!("machine: {{ca: {{crt: {}}}}}\n", STANDARD.encode(&wrapped));
    let behind = [key.certificate().der(), pkcs8.as_slice()].concat();
    let problems = read_file("file", &behind).problems;
    assert_eq!(problems[0].der, key.certificate().der());
    for content in [pkcs8.as_slice(), wrapped.as_bytes(), swapped.as_bytes()] {
        let contents = read_file("file", content);
        assert_eq!((contents.kept.len(), contents.problems.len()), (0, 1));
        assert_eq!(contents.problems[0].der, [0_u8; 0]);
    }
}

#[test]
fn a_certificate_that_is_cut_off_is_still_shown() {
    let whole = Certificate::many_from_pem(vendored("talos-ca")).unwrap();
    let der = whole[0].der();
    for length in [12, der.len() / 2, der.len() - 1] {
        let part = Inspection::certificate_part(&der[..length]);
        assert_eq!(part, Some(&der[..length]));
    }
    assert_eq!(Inspection::certificate_part(der), Some(der));
    for other in [&[][..], &[0x30], &[0x30, 0x03, 0x02, 0x01, 0x00], b"text"] {
        assert_eq!(Inspection::certificate_part(other), None, "{other:?}");
    }
}
