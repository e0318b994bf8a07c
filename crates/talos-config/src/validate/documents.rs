//! What Talos checks in documents other than the main one.
//!
//! Most of it is one look at one field, written down in a table (`fields`). What takes more than that is a function of
//! the kind, sorted by subject; expressions in CEL are checked as far as their types go (`cel`). What documents do to each
//! other and to the main document is in `conflicts`, `legacy` and `whole`.

mod addressing;
mod bgp;
mod cel;
mod conflicts;
mod containers;
mod fields;
mod images;
mod kubernetes;
mod legacy;
mod links;
mod names;
mod pem;
mod routing;
mod runtime;
#[cfg(test)]
mod tests;
mod volumes;
mod whole;

pub(super) use addressing::subnets;
pub(super) use containers::runtime_spec;
pub(super) use kubernetes::{annotations, kubelet_settings, labels, taints};

use super::at::{At, Document};
use super::sink::Sink;
use super::target::Context;

/// A rule of one kind, given the place of the document.
type Rule = fn(&At<'_>, &Context<'_>, &mut Sink<'_>);

/// The kinds that take more than a look at single fields.
const RULES: &[(&str, Rule)] = &[
    ("BGPInstanceConfig", bgp::instance),
    ("BondConfig", links::bond),
    ("BridgeConfig", links::plain),
    ("CRIBaseRuntimeSpecConfig", containers::base_runtime_spec),
    ("ContainerConfig", containers::container),
    ("DHCPv4Config", addressing::dhcp),
    ("DHCPv6Config", addressing::dhcp),
    ("DiscoveryServiceConfig", addressing::discovery),
    ("DummyLinkConfig", links::plain),
    ("EnvironmentConfig", runtime::environment),
    ("EtcFileConfig", runtime::etc_file),
    ("ExtensionServiceConfig", runtime::extension_service),
    ("ExternalVolumeConfig", volumes::external),
    ("HTTPProbeConfig", addressing::http_probe),
    ("HostnameConfig", addressing::hostname),
    ("ImageVerificationConfig", images::verification),
    ("KmsgLogConfig", runtime::kmsg_log),
    ("KubeAPIServerCAConfig", kubernetes::api_server_ca),
    ("KubeAPIServerConfig", kubernetes::api_server),
    ("KubeAggregatorCAConfig", kubernetes::aggregator_ca),
    ("KubeAuthorizerConfig", kubernetes::authorizer),
    ("KubeClusterConfig", kubernetes::cluster),
    ("KubeControllerManagerConfig", kubernetes::pod),
    ("KubeFlannelCNIConfig", kubernetes::resources),
    ("KubeNetworkConfig", kubernetes::network),
    ("KubeNodeConfig", kubernetes::node),
    ("KubeProxyConfig", kubernetes::proxy),
    ("KubeSchedulerConfig", kubernetes::pod),
    ("KubeServiceAccountConfig", kubernetes::service_account),
    ("KubeSpanConfig", addressing::kubespan),
    ("KubeTalosAPIAccessConfig", kubernetes::talos_api_access),
    ("KubeletConfig", kubernetes::kubelet),
    ("LVMLogicalVolumeConfig", volumes::logical_volume),
    ("LinkAliasConfig", links::alias),
    ("LinkConfig", links::plain),
    ("NetworkRuleConfig", routing::firewall_rule),
    ("RawVolumeConfig", volumes::sized),
    ("RegistryAuthConfig", images::registry_auth),
    ("RegistryMirrorConfig", images::registry_mirror),
    ("RegistryTLSConfig", images::registry_tls),
    ("ResolverConfig", addressing::resolver),
    ("RoutingRuleConfig", routing::policy_rule),
    ("SideroLinkConfig", runtime::siderolink),
    ("SwapVolumeConfig", volumes::sized),
    ("SysctlConfig", runtime::parameters),
    ("SysfsConfig", runtime::parameters),
    ("TimeSyncConfig", addressing::time_sync),
    ("UnattendedInstallConfig", runtime::unattended_install),
    ("UserVolumeConfig", volumes::user),
    ("VLANConfig", links::plain),
    ("VRFConfig", links::vrf),
    ("VethConfig", links::veth),
    ("VolumeConfig", volumes::system),
    ("WireguardConfig", links::wireguard),
];

/// Checks one document by the rules of its kind.
pub(super) fn check(document: &Document<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let root = document.root();
    fields::check(&root, context, sink);
    let rules = RULES.iter().filter(|(kind, _)| *kind == document.kind);
    for (_, rule) in rules {
        rule(&root, context, sink);
    }
}

/// Checks documents against each other and against the main one.
pub(super) fn conflicts(documents: &[Document<'_>], context: &Context<'_>, sink: &mut Sink<'_>) {
    conflicts::check(documents, context, sink);
    if let Some(main) = documents.iter().find(|document| document.is_main()) {
        legacy::check(main, documents, context, sink);
    }
    if context.at_least(14) {
        whole::check(documents, context, sink);
    }
}

/// Returns the items of a list that count: those that are null do not exist for Talos.
fn items<'b>(list: &'b At<'_>) -> impl Iterator<Item = At<'b>> {
    list.items().filter(At::is_set)
}

/// Reports that a field must be there.
fn missing(at: &At<'_>, sink: &mut Sink<'_>) {
    sink.error("missing-field", at, "it must be set");
}
