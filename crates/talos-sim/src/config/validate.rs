//! Rules that a configuration must keep, in the machine's own words where they are recorded.

use std::net::IpAddr;

use serde_json::Value;

use crate::config::Documents;
use crate::options::Platform;

/// What validation of a configuration finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Problems that refuse the configuration.
    pub(crate) errors: Vec<String>,
    /// Remarks for the user.
    pub(crate) warnings: Vec<String>,
}

/// Checks the main document; a configuration without one is not checked.
pub(crate) fn validate(documents: &Documents, platform: Platform) -> Findings {
    let mut findings = Findings::default();
    let Some(main) = documents.main() else {
        return findings;
    };
    let errors = &mut findings.errors;
    let machine_type = text(main, "/machine/type");
    let is_control_plane = matches!(machine_type, "controlplane" | "init");
    match machine_type {
        "init" => findings
            .warnings
            .push("use \"controlplane\" instead of \"init\" for machine type".to_owned()),
        "join" | "" => findings
            .warnings
            .push("use \"worker\" for machine type".to_owned()),
        "controlplane" | "worker" => {}
        other => errors.push(format!("unknown machine type {other:?}")),
    }
    if !main.get("machine").is_some_and(Value::is_object) {
        errors.push("machine instructions are required".to_owned());
    }
    match documents.endpoint() {
        None | Some("") => errors.push("cluster controlplane endpoint is required".to_owned()),
        Some(endpoint) if !endpoint.contains("://") => {
            errors.push(format!(
                "invalid cluster controlplane endpoint {endpoint:?}"
            ));
        }
        Some(_) => {}
    }
    if !is_control_plane && set(main, "/cluster/etcd") {
        errors.push("etcd config is only allowed on control plane machines".to_owned());
    }
    if main.get("persist") == Some(&Value::Bool(false)) {
        errors.push("persist should be enabled".to_owned());
    }
    match platform {
        Platform::Container => container_rules(main, errors),
        Platform::Metal => install_rules(documents, main, errors),
    }
    network_rules(main, errors);
    authority_rules(main, is_control_plane, errors);
    findings
}

/// The text of a list of problems of the main document, nested as machines nest it.
pub(crate) fn report(errors: &[String]) -> String {
    let list = |items: &[String]| {
        let count = match items.len() {
            1 => "1 error occurred".to_owned(),
            count => format!("{count} errors occurred"),
        };
        let items: Vec<String> = items.iter().map(|item| format!("* {item}")).collect();
        format!("{count}:\n\t{}\n\n", items.join("\n\t"))
    };
    list(&[format!("v1alpha1.Config: {}", list(errors))])
}

fn container_rules(main: &Value, errors: &mut Vec<String>) {
    let on = |pointer| main.pointer(pointer) == Some(&Value::Bool(true));
    if !on("/machine/features/hostDNS/enabled") {
        errors.push("feature HostDNS should be enabled in container mode (.machine.features.hostDNS.enabled)".to_owned());
    }
    if !on("/machine/features/hostDNS/forwardKubeDNSToHost") {
        errors.push("feature HostDNS should forward kube-dns to host in container mode (.machine.features.hostDNS.forwardKubeDNSToHost)".to_owned());
    }
}

fn install_rules(documents: &Documents, main: &Value, errors: &mut Vec<String>) {
    if documents.of_kind("UnattendedInstallConfig").is_some() {
        return;
    }
    if !set(main, "/machine/install") {
        errors.push("install instructions are required in metal mode".to_owned());
    } else if text(main, "/machine/install/disk").is_empty()
        && !set(main, "/machine/install/diskSelector")
    {
        errors.push("either install disk or diskSelector should be defined".to_owned());
    }
}

fn network_rules(main: &Value, errors: &mut Vec<String>) {
    let cni = text(main, "/cluster/network/cni/name");
    if !matches!(cni, "" | "custom" | "flannel" | "none") {
        errors.push(format!("invalid CNI name {cni:?}"));
    }
    let taints = main
        .pointer("/machine/nodeTaints")
        .and_then(Value::as_object);
    for (key, value) in taints.into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let effect = value.rsplit_once(':').map_or(value, |(_, effect)| effect);
        if !matches!(effect, "NoExecute" | "NoSchedule" | "PreferNoSchedule") {
            errors.push(format!("invalid taint effect {effect:?} of {key:?}"));
        }
    }
    let interfaces = main
        .pointer("/machine/network/interfaces")
        .and_then(Value::as_array);
    for interface in interfaces.into_iter().flatten() {
        if set(interface, "/interface") == set(interface, "/deviceSelector") {
            errors.push("an interface needs either a name or a device selector".to_owned());
        }
        let addresses = interface.get("addresses").and_then(Value::as_array);
        for address in addresses.into_iter().flatten().filter_map(Value::as_str) {
            let host = address.split_once('/').map_or(address, |(host, _)| host);
            if host.parse::<IpAddr>().is_err() {
                errors.push(format!("invalid interface address {address:?}"));
            }
        }
    }
}

fn authority_rules(main: &Value, is_control_plane: bool, errors: &mut Vec<String>) {
    let kubernetes_key = !text(main, "/cluster/ca/key").is_empty();
    let talos_key = !text(main, "/machine/ca/key").is_empty();
    if !is_control_plane {
        if kubernetes_key {
            errors.push(
                "cluster CA key is not allowed on non-controlplane nodes (.cluster.ca)".to_owned(),
            );
        }
        if talos_key {
            errors.push(
                "issuing Talos API CA key is not allowed on non-controlplane nodes (.machine.ca)"
                    .to_owned(),
            );
        }
        if kubernetes_key {
            errors.push("issuing Kubernetes API CA key is not allowed on non-controlplane nodes (.cluster.ca)".to_owned());
        }
    }
    let accepted = main
        .pointer("/machine/acceptedCAs")
        .and_then(Value::as_array);
    if text(main, "/machine/ca/crt").is_empty() && accepted.is_none_or(Vec::is_empty) {
        errors.push(
            "issuing CA or some accepted CAs are required (.machine.ca, machine.acceptedCAs)"
                .to_owned(),
        );
    }
    if is_control_plane && !talos_key {
        errors.push("issuing CA is required (.machine.ca)".to_owned());
    }
}

fn text<'a>(main: &'a Value, pointer: &str) -> &'a str {
    main.pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn set(main: &Value, pointer: &str) -> bool {
    main.pointer(pointer).is_some_and(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let documents = Documents::read(text).unwrap();
        let findings = validate(&documents, Platform::Container);
        assert_eq!(report(&findings.errors), expected);
    }

    /// Recorded from a real machine (recorded/upgrade/f-errors).
    #[test]
    fn problems_read_like_the_machine_s() {
        check(
            "machine: {type: controlplane}\ncluster: {}\n",
            "1 error occurred:\n\t* v1alpha1.Config: 5 errors occurred:\n\t* cluster controlplane endpoint is required\n\t* feature HostDNS should be enabled in container mode (.machine.features.hostDNS.enabled)\n\t* feature HostDNS should forward kube-dns to host in container mode (.machine.features.hostDNS.forwardKubeDNSToHost)\n\t* issuing CA or some accepted CAs are required (.machine.ca, machine.acceptedCAs)\n\t* issuing CA is required (.machine.ca)\n\n\n\n",
        );
        let worker = "
machine:
    type: worker
    ca: {crt: YQ==, key: YQ==}
    features: {hostDNS: {enabled: true, forwardKubeDNSToHost: true}}
cluster:
    controlPlane: {endpoint: https://10.5.0.2:6443}
    ca: {crt: YQ==, key: YQ==}
    etcd: {}
";
        check(
            worker,
            "1 error occurred:\n\t* v1alpha1.Config: 4 errors occurred:\n\t* etcd config is only allowed on control plane machines\n\t* cluster CA key is not allowed on non-controlplane nodes (.cluster.ca)\n\t* issuing Talos API CA key is not allowed on non-controlplane nodes (.machine.ca)\n\t* issuing Kubernetes API CA key is not allowed on non-controlplane nodes (.cluster.ca)\n\n\n\n",
        );
    }
}
