//! Where the YAML of a spec calls a field otherwise than its protobuf form does, and sets of flags.

/// Returns the protobuf name of a YAML key of a message, if the two differ.
pub(super) fn field(message: &str, key: &str) -> Option<&'static str> {
    FIELDS
        .iter()
        .find(|(of, yaml, _)| (*of == message || *of == ANY) && *yaml == key)
        .map(|(_, _, proto)| *proto)
}

/// Returns the name of an enum's value that Talos itself misspells, by its text.
pub(super) fn misspelled(text: &str) -> Option<&'static str> {
    (text == "loopback").then_some("LINK_LOOPBCK")
}

/// The names of flags that a number combines.
#[derive(Clone, Copy)]
pub(super) enum Flags {
    /// The values of an enum of the contract.
    Enum(&'static str),
    /// Names and bits.
    Bits(&'static [(&'static str, u32)]),
}

/// Returns the flags that a numeric field combines, if it does.
pub(super) fn flags(message: &str, field: &str) -> Option<Flags> {
    if field != "flags" {
        return None;
    }
    Some(match message {
        "AddressSpecSpec" | "AddressStatusSpec" => Flags::Enum(ADDRESS_FLAGS),
        "RouteSpecSpec" | "RouteStatusSpec" => Flags::Enum(ROUTE_FLAGS),
        "LinkStatusSpec" => Flags::Bits(LINK_FLAGS),
        _ => return None,
    })
}

/// Any message.
const ANY: &str = "";

/// Message, key in YAML, field in protobuf.
const FIELDS: &[(&str, &str, &str)] = &[
    (ANY, "layer", "config_layer"),
    ("APIServerConfigSpec", "serviceCIDR", "service_cid_rs"),
    ("BootstrapManifestsConfigSpec", "string", "server"),
    ("ControlPlane", "port", "api_server_port"),
    ("LinkStatusSpec", "speedMbit", "speed_megabits"),
    ("EthernetStatusSpec", "speedMbit", "speed_megabits"),
    ("MemorySpec", "available", "mem_available"),
    ("MemorySpec", "total", "mem_total"),
    ("MemorySpec", "used", "mem_used"),
    ("MountRequestSpec", "parentID", "parent_mount_id"),
    ("RegistriesConfigSpec", "auths", "registry_auths"),
    ("RegistriesConfigSpec", "mirrors", "registry_mirrors"),
    ("RegistriesConfigSpec", "tls", "registry_tl_ss"),
    ("RegistryEndpointConfig", "endpoint", "endpoint_endpoint"),
    (
        "RegistryEndpointConfig",
        "overridePath",
        "endpoint_override_path",
    ),
    ("RegistryMirrorConfig", "endpoints", "mirror_endpoints"),
    (
        "RegistryMirrorConfig",
        "skipFallback",
        "mirror_skip_fallback",
    ),
    ("ResourceDefinitionSpec", "type", "resource_type"),
    ("RouteSpecSpec", "dst", "destination"),
    ("RouteSpecSpec", "src", "source"),
    ("RouteStatusSpec", "dst", "destination"),
    ("RouteStatusSpec", "src", "source"),
    ("TimeServerSpecSpec", "timeServers", "ntp_servers"),
    ("TimeServerStatusSpec", "timeServers", "ntp_servers"),
    ("VolumeStatusSpec", "symlink", "symlink_spec"),
];

const ADDRESS_FLAGS: &str = "talos.resource.definitions.enums.NethelpersAddressFlag";
const ROUTE_FLAGS: &str = "talos.resource.definitions.enums.NethelpersRouteFlag";

/// The interface flags of Linux.
const LINK_FLAGS: &[(&str, u32)] = &[
    ("UP", 0x1),
    ("BROADCAST", 0x2),
    ("DEBUG", 0x4),
    ("LOOPBACK", 0x8),
    ("POINTTOPOINT", 0x10),
    ("RUNNING", 0x40),
    ("NOARP", 0x80),
    ("PROMISC", 0x100),
    ("ALLMULTI", 0x200),
    ("MASTER", 0x400),
    ("SLAVE", 0x800),
    ("MULTICAST", 0x1000),
    ("PORTSEL", 0x2000),
    ("AUTOMEDIA", 0x4000),
    ("DYNAMIC", 0x8000),
    ("LOWER_UP", 0x1_0000),
];
