//! The fields that only get another place.

use serde_json::Value;

use self::How::{Flag, Not, Same, Text};
use super::work::{Field, Work};
use crate::yaml::Kind;

/// What becomes of a value.
#[derive(Clone, Copy)]
enum How {
    /// It stays the same.
    Same,
    /// It is text or holds text.
    Text,
    /// It is true or false.
    Flag,
    /// `disabled` becomes `enabled`.
    Not,
}

/// One field a line: its path in the main document, the minor version since which it has a document, the kind of that,
/// the path there, and what becomes of the value.
const ROWS: &str = "
machine.network.searchDomains                               12  ResolverConfig                searchDomains.domains                text
machine.network.disableSearchDomain                         12  ResolverConfig                searchDomains.disableDefault         flag
machine.network.kubespan.enabled                            13  KubeSpanConfig                enabled                              flag
machine.network.kubespan.advertiseKubernetesNetworks        13  KubeSpanConfig                advertiseKubernetesNetworks          flag
machine.network.kubespan.allowDownPeerBypass                13  KubeSpanConfig                allowDownPeerBypass                  flag
machine.network.kubespan.harvestExtraEndpoints              13  KubeSpanConfig                harvestExtraEndpoints                flag
machine.network.kubespan.mtu                                13  KubeSpanConfig                mtu                                  same
machine.network.kubespan.filters.endpoints                  13  KubeSpanConfig                filters.endpoints                    text
machine.network.kubespan.filters.excludeAdvertisedNetworks  13  KubeSpanConfig                filters.excludeAdvertisedNetworks    text
machine.time.disabled                                       12  TimeSyncConfig                enabled                              not
machine.time.bootTimeout                                    12  TimeSyncConfig                bootTimeout                          same
machine.time.servers                                        12  TimeSyncConfig                ntp.servers                          text
machine.sysctls                                             14  SysctlConfig                  params                               text
machine.sysfs                                               14  SysfsConfig                   params                               text
machine.udev.rules                                          14  UdevRulesConfig               rules                                text
machine.baseRuntimeSpecOverrides                            14  CRIBaseRuntimeSpecConfig      overrides                            same
machine.features.imageCache.localEnabled                    14  ImageCacheConfig              local.enabled                        flag
machine.features.hostDNS.enabled                            14  ResolverConfig                hostDNS.enabled                      flag
machine.features.hostDNS.forwardKubeDNSToHost               14  ResolverConfig                hostDNS.forwardKubeDNSToHost         flag
machine.features.hostDNS.resolveMemberNames                 14  ResolverConfig                hostDNS.resolveMemberNames           flag
machine.kubelet.image                                       14  KubeletConfig                 image                                text
machine.kubelet.extraConfig                                 14  KubeletConfig                 config                               same
machine.kubelet.extraArgs                                   14  KubeletConfig                 extraArgs                            text
machine.kubelet.clusterDNS                                  14  KubeletConfig                 clusterDNS                           text
machine.kubelet.defaultRuntimeSeccompProfileEnabled         14  KubeletConfig                 defaultRuntimeSeccompProfileEnabled  flag
machine.kubelet.credentialProviderConfig                    14  KubeCredentialProviderConfig  configuration                        same
machine.kubelet.skipNodeRegistration                        14  KubeNodeConfig                skipNodeRegistration                 flag
machine.kubelet.registerWithFQDN                            14  KubeNodeConfig                registerWithFQDN                     flag
machine.kubelet.nodeIP.validSubnets                         14  KubeNodeConfig                nodeIP.validSubnets                  text
machine.nodeAnnotations                                     14  KubeNodeConfig                annotations                          text
cluster.id                                                  14  DiscoveryIdentityConfig       clusterID                            text
cluster.secret                                              14  DiscoveryIdentityConfig       clusterSecret                        text
cluster.clusterName                                         14  KubeClusterConfig             clusterName                          text
cluster.controlPlane.endpoint                               14  KubeClusterConfig             endpoint                             text
cluster.controlPlane.localAPIServerPort                     14  KubeAPIServerConfig           apiPort                              same
cluster.apiServer.image                                     14  KubeAPIServerConfig           image                                text
cluster.apiServer.extraArgs                                 14  KubeAPIServerConfig           extraArgs                            text
cluster.apiServer.env                                       14  KubeAPIServerConfig           env                                  text
cluster.apiServer.resources                                 14  KubeAPIServerConfig           resources                            same
cluster.apiServer.certSANs                                  14  KubeAPIServerConfig           certExtraSANs                        text
cluster.apiServer.auditPolicy                               14  KubeAuditPolicyConfig         configuration                        same
machine.controlPlane.controllerManager.disabled             14  KubeControllerManagerConfig   enabled                              not
cluster.controllerManager.image                             14  KubeControllerManagerConfig   image                                text
cluster.controllerManager.extraArgs                         14  KubeControllerManagerConfig   extraArgs                            text
cluster.controllerManager.env                               14  KubeControllerManagerConfig   env                                  text
cluster.controllerManager.resources                         14  KubeControllerManagerConfig   resources                            same
machine.controlPlane.scheduler.disabled                     14  KubeSchedulerConfig           enabled                              not
cluster.scheduler.image                                     14  KubeSchedulerConfig           image                                text
cluster.scheduler.config                                    14  KubeSchedulerConfig           config                               same
cluster.scheduler.extraArgs                                 14  KubeSchedulerConfig           extraArgs                            text
cluster.scheduler.env                                       14  KubeSchedulerConfig           env                                  text
cluster.scheduler.resources                                 14  KubeSchedulerConfig           resources                            same
cluster.proxy.disabled                                      14  KubeProxyConfig               enabled                              not
cluster.proxy.image                                         14  KubeProxyConfig               image                                text
cluster.proxy.mode                                          14  KubeProxyConfig               mode                                 text
cluster.coreDNS.disabled                                    14  KubeCoreDNSConfig             enabled                              not
cluster.coreDNS.image                                       14  KubeCoreDNSConfig             image                                text
";

/// The sections whose comments go above their document.
const SECTIONS: [(&[&str], &str); 11] = [
    (&["machine", "time"], "TimeSyncConfig"),
    (&["machine", "install"], "UnattendedInstallConfig"),
    (&["machine", "kubelet"], "KubeletConfig"),
    (&["machine", "network", "kubespan"], "KubeSpanConfig"),
    (&["cluster", "network"], "KubeNetworkConfig"),
    (&["cluster", "controlPlane"], "KubeClusterConfig"),
    (&["cluster", "apiServer"], "KubeAPIServerConfig"),
    (
        &["cluster", "controllerManager"],
        "KubeControllerManagerConfig",
    ),
    (&["cluster", "scheduler"], "KubeSchedulerConfig"),
    (&["cluster", "proxy"], "KubeProxyConfig"),
    (&["cluster", "coreDNS"], "KubeCoreDNSConfig"),
];

/// Moves what no other rule has dealt with.
pub(super) fn all(work: &mut Work<'_>) {
    for (from, since, kind, to, how) in ROWS.lines().filter_map(row) {
        if !work.target.has(since) {
            continue;
        }
        let from: Vec<&str> = from.split('.').collect();
        let to: Vec<&str> = to.split('.').collect();
        if let Some(field) = work.at(&from) {
            one(work, &field, kind, &to, how);
        }
    }
    for (section, kind) in SECTIONS {
        if work.has_draft(kind, "")
            && let Some(field) = work.root.at(section)
        {
            work.trace(&field, kind, "", Vec::new());
        }
    }
}

/// Reads a line of the table.
fn row(line: &'static str) -> Option<(&'static str, u8, &'static str, &'static str, How)> {
    let mut columns = line.split_ascii_whitespace();
    let from = columns.next()?;
    let since = columns.next()?.parse().ok()?;
    let kind = columns.next()?;
    let to = columns.next()?;
    let how = match columns.next()? {
        "same" => Same,
        "text" => Text,
        "flag" => Flag,
        "not" => Not,
        _ => return None,
    };
    columns
        .next()
        .is_none()
        .then_some((from, since, kind, to, how))
}

fn one(work: &mut Work<'_>, field: &Field<'_>, kind: &'static str, to: &[&str], how: How) {
    if is_empty(field) && to != ["searchDomains", "domains"] {
        return work.drop(field, "it is empty");
    }
    match how {
        Flag => {
            if let Some(flag) = work.flag(field) {
                work.put(field, kind, "", to, Value::Bool(flag));
            }
        }
        Same => work.put(field, kind, "", to, field.value()),
        Text => work.copy(field, kind, "", to),
        Not => {
            if let Some(disabled) = work.flag(field) {
                match disabled {
                    true => work.put(field, kind, "", to, Value::Bool(false)),
                    false => work.drop(field, "it is the default"),
                }
            }
        }
    }
}

/// Returns whether a field says nothing.
fn is_empty(field: &Field<'_>) -> bool {
    match field.node.kind() {
        Kind::Mapping | Kind::List => field.node.is_empty(),
        _ => field.node.as_str() == Some(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;
    use crate::schema::MAIN;

    #[test]
    fn every_line_is_one_of_the_table_and_names_fields_that_are_there() {
        for line in ROWS.lines().filter(|line| !line.is_empty()) {
            let (from, since, kind, to, _) = row(line).expect(line);
            let schema = Schema::for_talos(&format!("1.{since}"));
            let has = |kind, path: &str| {
                let mut keys = path.split('.');
                let top = schema.kind(kind);
                top.is_some_and(|top| {
                    keys.try_fold(top, |field, key| field.fields.get(key))
                        .is_some()
                })
            };
            assert!(has(MAIN, from), "{from}");
            assert!(has(kind, to), "{kind} {to}");
        }
    }
}
