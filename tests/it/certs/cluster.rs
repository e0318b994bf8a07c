//! Certificates of whole clusters: collected and judged.

use std::time::Duration;

use jiff::Timestamp;
use talos_certs::{
    CheckOptions, CollectOptions, EndpointSource, ExpectedName, KubernetesAccess, Report,
    ServerKind, Source, check, collect,
};
use talos_client::{Client, Options};
use talos_config::kubeconfig::Kubeconfig;
use talos_config::talosconfig::TalosConfig;
use talos_kube::Address;
use talos_pki::Name;
use talos_sim::Cluster;

/// Who asks, and from where Kubernetes can be dialled.
struct Asker<'cluster> {
    cluster: &'cluster Cluster,
    roles: &'static [&'static str],
    kubeconfig: bool,
    k8s_endpoint: bool,
}

impl<'cluster> Asker<'cluster> {
    fn admin(cluster: &'cluster Cluster) -> Self {
        Self {
            cluster,
            roles: &["os:admin"],
            kubeconfig: false,
            k8s_endpoint: false,
        }
    }

    async fn report(&self, expected: &[&str]) -> Report {
        let now = Timestamp::now();
        let config = TalosConfig::parse("talosconfig", &self.cluster.talosconfig(self.roles));
        let config = config.unwrap();
        let (name, _) = config.select(None).unwrap();
        let credentials = config.credentials(name).unwrap();
        let client = Client::new(Options::from_context(&config, None, now).unwrap()).unwrap();
        let kubernetes = if self.kubeconfig {
            let text = self.cluster.kubeconfig();
            let kubeconfig = Kubeconfig::parse("kubeconfig", &text).unwrap();
            KubernetesAccess::from_kubeconfig(&kubeconfig).unwrap()
        } else {
            KubernetesAccess::default()
        };
        let nodes = self.cluster.nodes();
        let dial = nodes[0].kube_dial().filter(|_| self.k8s_endpoint);
        let identity = credentials.identity.unwrap();
        let options = CollectOptions {
            nodes: nodes
                .iter()
                .map(|node| node.address().to_string())
                .collect(),
            endpoints: client.endpoints(),
            talos_authorities: credentials.authorities,
            talos_client: Some(("talosconfig".to_owned(), identity.chain[0].clone())),
            k8s_endpoint: dial.map(|dial| Address {
                host: Name::Ip(dial.ip()),
                port: dial.port(),
            }),
            kubernetes,
            kinds: vec![ServerKind::Apid, ServerKind::KubeApiserver],
            concurrency: 8,
            timeout: Duration::from_secs(10),
            ..CollectOptions::default()
        };
        let evidence = collect(Ok(&client), &options).await;
        let expected = expected.iter().map(|name| ExpectedName {
            kind: None,
            node: None,
            name: Name::parse(name).unwrap(),
        });
        let options = CheckOptions {
            expected: expected.collect(),
            ..CheckOptions::default()
        };
        check(&evidence, &options, now)
    }
}

/// One line a server: kind, where its certificate was seen, and the codes of its findings with their names.
fn lines(report: &Report) -> Vec<String> {
    let line = |server: &talos_certs::Server| {
        let source = match server.source {
            Source::Served => "served",
            Source::Resource => "resource",
        };
        let findings = server.findings.iter().map(|finding| match &finding.name {
            Some(name) => format!(" {} {name}", finding.code),
            None => format!(" {}", finding.code),
        });
        let findings: String = findings.collect();
        format!("{} {source}{findings}", server.kind.as_str())
    };
    report.servers.iter().map(line).collect()
}

#[tokio::test]
async fn every_server_of_a_cluster_that_can_be_dialled_is_judged_as_served() {
    let options = talos_sim::Options {
        controlplanes: 2,
        workers: 1,
        ..talos_sim::Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let report = Asker::admin(&cluster).report(&[]).await;
    assert_eq!(
        lines(&report),
        [
            "apid served",
            "apid served",
            "apid served",
            "kube-apiserver served",
            "kube-apiserver served"
        ],
        "{report:#?}"
    );
    assert!(!report.has_findings() && !report.incomplete, "{report:#?}");
    let endpoint = report.endpoint.unwrap();
    assert_eq!(endpoint.url, cluster.endpoint());
    assert_eq!(endpoint.source, EndpointSource::MachineConfig);
}

#[tokio::test]
async fn a_cluster_behind_nat_is_judged_through_the_forwarded_port_and_its_resources() {
    let options = talos_sim::Options {
        controlplanes: 1,
        workers: 1,
        nat: true,
        ..talos_sim::Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let report = Asker::admin(&cluster)
        .report(&["172.30.0.11", "127.0.0.1"])
        .await;
    assert_eq!(
        lines(&report),
        [
            "apid served name-missing 172.30.0.11",
            "apid resource name-missing 172.30.0.11",
            "kube-apiserver resource name-missing 172.30.0.11",
        ],
        "{report:#?}"
    );
    assert!(!report.incomplete);
    let forwarded = Asker {
        k8s_endpoint: true,
        kubeconfig: true,
        ..Asker::admin(&cluster)
    };
    let report = forwarded.report(&["172.30.0.11"]).await;
    assert_eq!(
        lines(&report)[2],
        "kube-apiserver served name-missing 172.30.0.11"
    );
    let fix = report.servers[2].fix.as_ref().unwrap();
    assert_eq!(fix.setting, "cluster.apiServer.certSANs");
    assert_eq!(
        fix.node.as_deref(),
        Some(cluster.nodes()[0].address().to_string().as_str())
    );
}

#[tokio::test]
async fn a_reader_behind_nat_cannot_judge_what_is_not_forwarded() {
    let options = talos_sim::Options {
        controlplanes: 1,
        workers: 1,
        nat: true,
        ..talos_sim::Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let reader = Asker {
        roles: &["os:reader"],
        ..Asker::admin(&cluster)
    };
    let report = reader.report(&[]).await;
    assert_eq!(lines(&report), ["apid served"]);
    assert!(report.incomplete);
    let why: Vec<&str> = report
        .not_checked
        .iter()
        .map(|left_out| left_out.why.as_str())
        .collect();
    assert_eq!(why.len(), 2, "{why:?}");
    assert!(
        why.iter().all(
            |why| why.starts_with("it has no address that can be dialled from here; ")
                && why.contains("os:admin")
        ),
        "{why:?}"
    );
    // What a reader may see of the endpoint comes from KubePrism.
    let endpoint = report.endpoint.unwrap();
    assert_eq!(endpoint.source, EndpointSource::KubePrismConfigs);
    assert_eq!(endpoint.url, cluster.endpoint());
}

#[tokio::test]
async fn a_node_that_hides_its_machine_type_may_be_a_control_plane() {
    let options = talos_sim::Options {
        controlplanes: 1,
        workers: 1,
        ..talos_sim::Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    for node in cluster.nodes() {
        node.store()
            .destroy("config", "MachineTypes.config.talos.dev", "machine-type")
            .unwrap();
    }
    let report = Asker::admin(&cluster).report(&[]).await;
    assert_eq!(
        lines(&report),
        ["apid served", "apid served", "kube-apiserver served"],
        "{report:#?}"
    );
    assert!(report.incomplete);
    let [not_checked] = report.not_checked.as_slice() else {
        panic!("{report:#?}");
    };
    assert_eq!(not_checked.node, cluster.nodes()[1].address().to_string());
    assert_eq!(not_checked.kind, Some(ServerKind::KubeApiserver));
    let why = &not_checked.why;
    assert!(
        why.starts_with("connection refused") && why.contains("it may be a control plane: "),
        "{why}"
    );
}

#[tokio::test]
async fn a_reader_without_a_kubeconfig_cannot_judge_who_issued_what_kube_apiserver_presents() {
    let cluster = Cluster::start(talos_sim::Options::default()).await.unwrap();
    let reader = Asker {
        roles: &["os:reader"],
        ..Asker::admin(&cluster)
    };
    let report = reader.report(&[]).await;
    assert!(!report.has_findings() && report.incomplete, "{report:#?}");
    let why = report.not_checked.iter().map(|left_out| &left_out.why);
    assert!(
        why.eq(["issuer not checked: no authority known"]),
        "{report:#?}"
    );
}
