//! `ApplyConfiguration` (facts/api-semantics.md §5, facts/real-upgrade.md §4 and §5).

use std::time::Duration;

use talos_api::machine::apply_configuration_request::Mode;
use talos_api::machine::{ApplyConfiguration, ApplyConfigurationRequest};
use talos_pki::Name;
use talos_sim::{Delays, Platform, TalosVersion};

use super::*;

const CONFIGS: &str = "MachineConfigs.config.talos.dev";

async fn apply(
    channel: &Channel,
    data: &str,
    mode: Mode,
    dry_run: bool,
) -> Result<ApplyConfiguration, Status> {
    let mut client = MachineServiceClient::new(channel.clone());
    let data = data.as_bytes().to_vec();
    let request = ApplyConfigurationRequest {
        data,
        mode: mode.into(),
        dry_run,
        ..<_>::default()
    };
    let answer = client.apply_configuration(request).await?.into_inner();
    Ok(answer.messages[0].clone())
}

/// Versions and contents of the persistent and of the active configuration.
async fn kept(channel: &Channel) -> [(String, String); 2] {
    let mut found = Vec::new();
    for id in ["persistent", "v1alpha1"] {
        let kept = resource(channel, ("config", CONFIGS, id), &[])
            .await
            .unwrap();
        found.push((
            kept.metadata.as_ref().unwrap().version.clone(),
            machine_config(&kept),
        ));
    }
    found.try_into().unwrap()
}

async fn version(node: &Node, namespace: &str, kind: &str, id: &str) -> u64 {
    node.store()
        .get(namespace, kind, id)
        .unwrap()
        .metadata
        .version
}

/// Waits until a resource has a version.
async fn wait_for(node: &Node, (namespace, kind, id): (&str, &str, &str), wanted: u64) {
    let mut changes = node.store().changes(namespace, kind);
    while version(node, namespace, kind, id).await < wanted {
        tokio::time::timeout(Duration::from_secs(10), changes.next())
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test]
async fn refusals_read_like_a_real_machine_s() {
    let options = Options {
        platform: Platform::Container,
        workers: 0,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    let config = node.machine_config().unwrap();
    let check = async |data: &str, text: &str| {
        refused(
            apply(&channel, data, Mode::NoReboot, true).await,
            Code::InvalidArgument,
            text,
        );
    };
    check("", "config not found").await;
    check("machine:\n    bogus: 1\n", "error decoding document /v1alpha1/ (line 1): unknown keys found during decoding:\nmachine:\n    bogus: 1\n").await;
    check("apiVersion: v1alpha1\nkind: NoSuchKind\n", "error decoding document v1alpha1/NoSuchKind/ (line 1): \"NoSuchKind\" \"v1alpha1\": not registered").await;
    check("apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n", "the applied machine configuration doesn't contain v1alpha1 config, did you mean to patch the machine config instead?").await;
    check("machine: {type: controlplane}\n", "1 error occurred:\n\t* v1alpha1.Config: 5 errors occurred:\n\t* cluster controlplane endpoint is required\n\t* feature HostDNS should be enabled in container mode (.machine.features.hostDNS.enabled)\n\t* feature HostDNS should forward kube-dns to host in container mode (.machine.features.hostDNS.forwardKubeDNSToHost)\n\t* issuing CA or some accepted CAs are required (.machine.ca, machine.acceptedCAs)\n\t* issuing CA is required (.machine.ca)\n\n\n\n").await;
    let worker = config.replace("type: controlplane", "type: worker");
    check(&worker, "1 error occurred:\n\t* v1alpha1.Config: 4 errors occurred:\n\t* etcd config is only allowed on control plane machines\n\t* cluster CA key is not allowed on non-controlplane nodes (.cluster.ca)\n\t* issuing Talos API CA key is not allowed on non-controlplane nodes (.machine.ca)\n\t* issuing Kubernetes API CA key is not allowed on non-controlplane nodes (.cluster.ca)\n\n\n\n").await;
    let refused = apply(&channel, "@", Mode::NoReboot, true)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(
        refused.message().starts_with("decode error: yaml: "),
        "{refused}"
    );
    let token = config
        .lines()
        .find(|line| line.starts_with("    token: "))
        .unwrap();
    let changed = config.replacen(token, "    token: abcdef.0123456789abcdef", 1);
    let refused = apply(&channel, &changed, Mode::NoReboot, false)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("machine.token"), "{refused}");
    assert_eq!(kept(&channel).await.map(|(version, _)| version), ["1", "1"]);
}

#[tokio::test]
async fn a_dry_run_tells_and_changes_nothing() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    let config = node.machine_config().unwrap();
    let without = "Applied configuration without a reboot";
    for (mode, used, done) in [
        (Mode::NoReboot, Mode::NoReboot, without),
        (Mode::Auto, Mode::NoReboot, without),
        (
            Mode::Reboot,
            Mode::Reboot,
            "Applied configuration with a reboot",
        ),
        (
            Mode::Staged,
            Mode::Staged,
            "Staged configuration to be applied after the next reboot",
        ),
        (Mode::Try, Mode::Try, without),
    ] {
        let answer = apply(&channel, &config, mode, true).await.unwrap();
        assert_eq!((answer.mode(), answer.warnings.len()), (used, 0));
        let details =
            format!("Dry run summary:\n{done} (skipped in dry-run).\nConfig diff:\n\nNo changes.");
        assert_eq!(answer.mode_details, details);
    }
    let changed = config.replace("kube-scheduler:v1.33.4", "kube-scheduler:v1.34.0");
    let answer = apply(&channel, &changed, Mode::Auto, true).await.unwrap();
    assert!(answer.mode_details.contains(
        "\n-        image: registry.k8s.io/kube-scheduler:v1.33.4\n+        image: registry.k8s.io/kube-scheduler:v1.34.0\n"
    ));
    assert!(kept(&channel).await == [("1".to_owned(), config.clone()), ("1".to_owned(), config)]);
}

#[tokio::test]
async fn every_apply_counts_and_keeps_the_exact_bytes() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    let config = node.machine_config().unwrap() + "# kept\n";
    for expected in ["2", "3"] {
        let answer = apply(&channel, &config, Mode::Auto, false).await.unwrap();
        assert_eq!(
            (answer.mode(), answer.mode_details.as_str()),
            (Mode::NoReboot, "Applied configuration without a reboot")
        );
        let both = (expected.to_owned(), config.clone());
        assert!(kept(&channel).await == [both.clone(), both]);
    }
}

#[tokio::test]
async fn a_staged_configuration_waits_for_the_next_boot() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    let config = node.machine_config().unwrap();
    let staged = config.replacen("debug: false", "debug: true", 1);
    apply(&channel, &staged, Mode::Staged, false).await.unwrap();
    let expected = [("2".to_owned(), staged.clone()), ("1".to_owned(), config)];
    assert!(kept(&channel).await == expected);
    assert!(node.machine_config().unwrap() != staged);
}

#[tokio::test]
async fn a_trial_rolls_back_unless_another_apply_comes_first() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    let config = node.machine_config().unwrap();
    let tried = config.replacen("debug: false", "debug: true", 1);
    let answer = apply(&channel, &tried, Mode::Try, false).await.unwrap();
    assert_eq!(answer.mode(), Mode::Try);
    let [persistent, active] = kept(&channel).await;
    assert_eq!((persistent.0.as_str(), persistent.1 == config), ("1", true));
    assert_eq!((active.0.as_str(), active.1 == tried), ("2", true));
    assert!(node.expire_trial());
    let [_, active] = kept(&channel).await;
    assert_eq!((active.0.as_str(), active.1 == config), ("3", true));

    apply(&channel, &tried, Mode::Try, false).await.unwrap();
    // Even a dry run stops the timer.
    apply(&channel, &tried, Mode::NoReboot, true).await.unwrap();
    assert!(!node.expire_trial());
    assert!(node.machine_config().unwrap() == tried);
}

#[tokio::test]
async fn a_trial_ends_by_itself() {
    let delays = Delays {
        try_rollback: Some(Duration::from_millis(1)),
        ..Delays::default()
    };
    let options = Options {
        workers: 0,
        delays,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    let config = node.machine_config().unwrap();
    let tried = config.replacen("debug: false", "debug: true", 1);
    apply(&channel, &tried, Mode::Try, false).await.unwrap();
    wait_for(node, ("config", CONFIGS, "v1alpha1"), 3).await;
    assert!(node.machine_config().unwrap() == config);
}

#[tokio::test]
async fn two_applies_at_once_are_one_too_many() {
    let delays = Delays {
        apply: Duration::from_secs(3600),
        ..Delays::default()
    };
    let options = Options {
        workers: 0,
        delays,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    let config = node.machine_config().unwrap();
    let result = tokio::select! {
        result = apply(&channel, &config, Mode::Auto, false) => result,
        result = apply(&channel, &config, Mode::Auto, false) => result,
    };
    assert_eq!(result.unwrap_err().code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn new_names_are_covered_by_a_certificate_issued_twice() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    let config = node.machine_config().unwrap();
    let changed = config.replacen("certSANs: []", "certSANs: [172.30.0.11]", 1);
    apply(&channel, &changed, Mode::NoReboot, false)
        .await
        .unwrap();
    for (kind, id, wanted) in [
        ("CertSANs.secrets.talos.dev", "api", 2),
        ("ApiCertificates.secrets.talos.dev", "api", 3),
        ("TrustdCertificates.secrets.talos.dev", "trustd", 3),
    ] {
        wait_for(node, ("secrets", kind, id), wanted).await;
        assert_eq!(version(node, "secrets", kind, id).await, wanted, "{kind}");
    }
    let served = served_names(&cluster, node).await;
    assert!(served.contains(&"172.30.0.11".parse().unwrap()));
    // The old connection is still good.
    tag(&channel, &[]).await.unwrap();
}

async fn served_names(cluster: &Cluster, node: &Node) -> Vec<Name> {
    let config = Credentials::of(cluster, &["os:admin"]).config();
    let connector = TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(node.dial().unwrap()).await.unwrap();
    let stream = connector
        .connect(ServerName::from(node.address()), stream)
        .await
        .unwrap();
    let chain = stream.get_ref().1.peer_certificates().unwrap();
    Certificate::from_der(&chain[0]).unwrap().names().to_vec()
}

#[tokio::test]
async fn a_change_that_needs_a_reboot_reboots_in_auto_mode() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    let config = node.machine_config().unwrap();
    let token = config
        .lines()
        .find(|line| line.starts_with("    token: "))
        .unwrap();
    let changed = config.replacen(token, "    token: abcdef.0123456789abcdef", 1);
    let answer = apply(&channel, &changed, Mode::Auto, false).await.unwrap();
    assert_eq!(answer.mode(), Mode::Reboot);
    assert!(
        answer.mode_details.contains("machine.token"),
        "{}",
        answer.mode_details
    );
    let again = apply(&channel, &changed, Mode::Auto, false)
        .await
        .unwrap_err();
    assert!([Code::FailedPrecondition, Code::Unavailable, Code::Unknown].contains(&again.code()));
    while node.machine_config().unwrap() != changed {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn talos_1_14_knows_no_reboot_mode() {
    let options = Options {
        talos_version: TalosVersion::V1_14,
        workers: 0,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    let config = node.machine_config().unwrap();
    let reboot = apply(&channel, &config, Mode::Reboot, true)
        .await
        .unwrap_err();
    assert_eq!(reboot.code(), Code::Unimplemented);
    let token = config
        .lines()
        .find(|line| line.starts_with("    token: "))
        .unwrap();
    let changed = config.replacen(token, "    token: abcdef.0123456789abcdef", 1);
    let answer = apply(&channel, &changed, Mode::Auto, false).await.unwrap();
    assert_eq!(answer.mode(), Mode::NoReboot);
}

#[tokio::test]
async fn generated_configurations_are_valid_in_every_version() {
    for talos_version in TalosVersion::ALL {
        let cluster = Cluster::start(Options {
            talos_version,
            ..Options::default()
        })
        .await
        .unwrap();
        for node in cluster.nodes() {
            let channel = admin(&cluster, node).await;
            let answer = apply(
                &channel,
                &node.machine_config().unwrap(),
                Mode::NoReboot,
                true,
            )
            .await;
            assert!(
                answer.unwrap().mode_details.ends_with("No changes."),
                "{talos_version:?}"
            );
        }
    }
}
