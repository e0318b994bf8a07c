//! Rules that are one look at one field.

use super::cel::{self, Variables};
use super::{items, missing, names};
use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value::{self, Url};

/// What a field must be.
#[derive(Clone, Copy)]
enum Check {
    /// Text that is not empty, or any other value.
    Set,
    /// A list with an item.
    Filled,
    /// A mapping with a key.
    Object,
    /// A number in a range; absent is 0.
    Between(i128, i128),
    /// A number of at least so much, if it is there.
    AtLeast(i128),
    /// A duration, not negative.
    NotNegative,
    /// A duration of at least so many seconds, or none.
    Seconds(i64),
    /// An address.
    Address,
    /// A prefix.
    Prefix,
    /// A host and a port.
    HostPort,
    /// A URL with one of these schemes.
    Scheme(&'static [&'static str]),
    /// A name of letters, digits and `-`, and `_` if the last says so, with at most so many bytes.
    Name(usize, bool),
    /// A name of a Kubernetes object.
    Dns,
    /// A name, perhaps after a domain and a `/`, other than this one.
    Qualified(&'static str),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A condition over these variables; whether it must be there.
    Condition(Variables, bool),
    /// A base64 text of so many bytes.
    Base64(usize),
}

use Check::{
    Address, AtLeast, Base64, Between, Condition, Dns, Filled, HostPort, Name, NotNegative, Object,
    Prefix, Qualified, Scheme, Seconds, Set, Word,
};

const HTTP: Check = Scheme(&["http", "https"]);

/// Kind, path and check.
const FIELDS: &[(&str, &str, Check)] = &[
    ("BGPInstanceConfig", "name", Set),
    ("BGPInstanceConfig", "localASN", AtLeast(1)),
    ("BlackholeRouteConfig", "name", Prefix),
    ("BondConfig", "name", Set),
    ("BondConfig", "links", Filled),
    ("BondConfig", "bondMode", Set),
    ("BridgeConfig", "name", Set),
    ("CRICustomizationConfig", "name", Qualified("customization")),
    ("DHCPv4Config", "name", Set),
    ("DHCPv6Config", "name", Set),
    ("DiscoveryIdentityConfig", "clusterID", Set),
    ("DiscoveryIdentityConfig", "clusterSecret", Base64(32)),
    ("DiscoveryServiceConfig", "name", Set),
    (
        "DiscoveryServiceConfig",
        "endpoint",
        Scheme(&["http", "https", "grpc"]),
    ),
    ("DummyLinkConfig", "name", Set),
    ("EthernetConfig", "name", Set),
    ("EventSinkConfig", "endpoint", HostPort),
    ("ExistingVolumeConfig", "name", Name(usize::MAX, false)),
    (
        "ExistingVolumeConfig",
        "discovery.volumeSelector.match",
        Condition(Variables::Volume, true),
    ),
    ("ExistingVolumeConfig", "trim.interval", NotNegative),
    ("ExistingVolumeConfig", "scrub.interval", Seconds(10)),
    ("ExtensionServiceConfig", "name", Set),
    ("ExternalVolumeConfig", "name", Name(34, false)),
    ("FilesystemScrubConfig", "interval", Seconds(10)),
    ("FilesystemTrimConfig", "interval", NotNegative),
    ("HCloudVIPConfig", "name", Address),
    ("HCloudVIPConfig", "link", Set),
    ("HCloudVIPConfig", "apiToken", Set),
    ("HTTPProbeConfig", "name", Set),
    ("HTTPProbeConfig", "url", HTTP),
    ("HTTPProbeConfig", "timeout", NotNegative),
    ("HTTPProbeConfig", "interval", NotNegative),
    ("HTTPProbeConfig", "failureThreshold", Between(0, i128::MAX)),
    ("KernelModuleConfig", "name", Set),
    ("KmsgLogConfig", "name", Set),
    ("KubeAdmissionControlConfig", "name", Set),
    ("KubeAPIServerConfig", "image", Set),
    ("KubeAuthorizerConfig", "name", Set),
    (
        "KubeAuthorizerConfig",
        "type",
        Word(&["Node", "RBAC", "Webhook"]),
    ),
    ("KubeClusterConfig", "clusterName", Set),
    ("KubeClusterConfig", "endpoint", Set),
    ("KubeEtcdEncryptionConfig", "config", Object),
    ("KubeExternalManifestConfig", "name", Dns),
    ("KubeExternalManifestConfig", "url", HTTP),
    ("KubeFlannelCNIConfig", "backendType", Set),
    ("KubeInlineManifestConfig", "name", Dns),
    ("KubeNetworkConfig", "nodeCIDRMaskSizeIPv4", Between(0, 32)),
    ("KubeNetworkConfig", "nodeCIDRMaskSizeIPv6", Between(0, 128)),
    ("KubePrismConfig", "port", Between(1, 65535)),
    ("KubeServiceAccountConfig", "issuer.issuerURL", Set),
    ("KubeSpanConfig", "mtu", AtLeast(1280)),
    ("KubeStaticPodConfig", "name", Dns),
    ("KubeStaticPodConfig", "pod", Object),
    ("KubeletConfig", "image", Set),
    ("LVMLogicalVolumeConfig", "name", Name(63, true)),
    ("LVMLogicalVolumeConfig", "provisioning.volumeGroup", Set),
    ("LVMLogicalVolumeConfig", "provisioning.maxSize", Set),
    ("LVMVolumeGroupConfig", "name", Name(63, true)),
    (
        "LVMVolumeGroupConfig",
        "provisioning.volumeSelector.match",
        Condition(Variables::Member, true),
    ),
    ("Layer2VIPConfig", "name", Address),
    ("Layer2VIPConfig", "link", Set),
    (
        "LinkAliasConfig",
        "selector.match",
        Condition(Variables::Link, true),
    ),
    ("LinkConfig", "name", Set),
    ("NetworkRuleConfig", "name", Set),
    ("NetworkRuleConfig", "portSelector.ports", Filled),
    ("OOMConfig", "sampleInterval", NotNegative),
    (
        "OOMConfig",
        "triggerExpression",
        Condition(Variables::Pressure, false),
    ),
    (
        "OOMConfig",
        "cgroupRankingExpression",
        Condition(Variables::Ranking, false),
    ),
    ("RAIDArrayConfig", "name", Name(32, true)),
    (
        "RAIDArrayConfig",
        "provisioning.volumeSelector.match",
        Condition(Variables::Member, true),
    ),
    ("RawVolumeConfig", "name", Name(34, false)),
    ("RegistryAuthConfig", "name", Set),
    ("RegistryMirrorConfig", "name", Set),
    ("RegistryTLSConfig", "name", Set),
    ("StaticHostConfig", "name", Address),
    ("StaticHostConfig", "hostnames", Filled),
    ("SwapVolumeConfig", "name", Name(34, false)),
    ("TCPProbeConfig", "name", Set),
    ("TCPProbeConfig", "endpoint", Set),
    ("TCPProbeConfig", "timeout", NotNegative),
    ("TCPProbeConfig", "interval", NotNegative),
    ("TCPProbeConfig", "failureThreshold", Between(0, i128::MAX)),
    ("TimeSyncConfig", "bootTimeout", NotNegative),
    (
        "UnattendedInstallConfig",
        "provisioning.diskSelector.match",
        Condition(Variables::Disk, true),
    ),
    ("UserVolumeConfig", "name", Name(34, false)),
    ("UserVolumeConfig", "trim.interval", NotNegative),
    ("UserVolumeConfig", "scrub.interval", Seconds(10)),
    ("VLANConfig", "name", Set),
    ("VLANConfig", "vlanID", Between(1, 4094)),
    ("VLANConfig", "parent", Set),
    ("VRFConfig", "name", Set),
    ("VolumeConfig", "trim.interval", NotNegative),
    ("VolumeConfig", "scrub.interval", Seconds(10)),
    ("WatchdogTimerConfig", "device", Set),
    ("WatchdogTimerConfig", "timeout", Seconds(10)),
    ("WireguardConfig", "name", Set),
    ("WireguardConfig", "listenPort", Between(0, 65535)),
    ("ZswapConfig", "maxPoolPercent", Between(0, 100)),
];

/// Checks the fields of a document that are in the table.
pub(super) fn check(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let kind = root.document().kind;
    for (_, path, check) in FIELDS.iter().filter(|(of, ..)| *of == kind) {
        let keys: Vec<&str> = path.split('.').collect();
        look(&root.fields(&keys), *check, context, sink);
    }
}

fn look(at: &At<'_>, check: Check, context: &Context<'_>, sink: &mut Sink<'_>) {
    let wrong = match check {
        Set => at.is_blank() && at.len() == 0,
        Filled => {
            return if items(at).next().is_none() {
                missing(at, sink)
            };
        }
        Object => {
            return if at.len() == 0 {
                missing(at, sink)
            };
        }
        Between(..) | AtLeast(_) => return number(at, check, sink),
        NotNegative | Seconds(_) => return duration(at, check, sink),
        Condition(variables, needed) => return cel::check(at, variables, needed, context, sink),
        _ => at.is_blank(),
    };
    if wrong {
        return missing(at, sink);
    }
    let text = at.text();
    let wrong: Option<String> = match check {
        Address => value::address(&text)
            .is_none()
            .then(|| "an IP address is expected".into()),
        Prefix => value::prefix(&text)
            .is_none()
            .then(|| "an address prefix such as 10.0.0.0/8 is expected".into()),
        HostPort => value::host_port(&text)
            .is_none()
            .then(|| "a host and a port such as 10.0.0.1:3247 are expected".into()),
        Scheme(schemes) => scheme(&text, schemes),
        Name(most, underscore) => names::simple(&text, most, underscore),
        Dns => names::subdomain(&text),
        Qualified(taken) if text == taken => {
            Some(format!("`{taken}` is what the main document says"))
        }
        Qualified(_) => names::qualified(&text),
        Word(words) => {
            (!words.contains(&&*text)).then(|| format!("one of {} is expected", words.join(", ")))
        }
        Base64(bytes) => {
            let decoded = value::base64(&text);
            (decoded.is_none_or(|decoded| decoded.len() != bytes))
                .then(|| format!("base64 of {bytes} bytes is expected"))
        }
        _ => None,
    };
    if let Some(wrong) = wrong {
        let code = match check {
            Name(..) | Dns | Qualified(_) => "bad-name",
            _ => "bad-value",
        };
        sink.error(code, at, wrong);
    }
}

/// Returns what is wrong with a URL of which the scheme and the host matter.
fn scheme(text: &str, schemes: &[&str]) -> Option<String> {
    let url = Url::parse(text).ok()?;
    (!schemes.contains(&&*url.scheme)).then(|| {
        let schemes: Vec<String> = schemes
            .iter()
            .map(|scheme| format!("{scheme}://"))
            .collect();
        format!(
            "a URL that starts with {} is expected",
            schemes.join(" or ")
        )
    })
}

fn number(at: &At<'_>, check: Check, sink: &mut Sink<'_>) {
    let value = at.number();
    let (least, most) = match check {
        Between(least, most) => (least, most),
        AtLeast(least) if at.is_set() || least == 1 => (least, i128::MAX),
        _ => return,
    };
    let value = match value {
        Some(value) => value,
        None if at.is_set() => return,
        None => 0,
    };
    if (least..=most).contains(&value) {
        return;
    }
    if !at.is_set() {
        return missing(at, sink);
    }
    let message = match most {
        i128::MAX => format!("it must be at least {least}"),
        _ => format!("it must be between {least} and {most}"),
    };
    sink.error("bad-value", at, message);
}

fn duration(at: &At<'_>, check: Check, sink: &mut Sink<'_>) {
    let Some(value) = value::duration(&at.text()) else {
        return;
    };
    match check {
        Seconds(least) if value != 0 && value < least * 1_000_000_000 => {
            sink.error("bad-value", at, format!("it must be at least {least}s"));
        }
        NotNegative if value < 0 => {
            sink.error("bad-value", at, "it must not be negative");
        }
        _ => {}
    }
}
