//! Where the YAML of a spec calls a field otherwise than its protobuf form does.

/// Returns the protobuf name of a YAML key of a message, if the two differ.
pub(super) fn field(message: &str, key: &str) -> Option<&'static str> {
    FIELDS
        .iter()
        .find(|(of, yaml, _)| *of == message && *yaml == key)
        .map(|(_, _, proto)| *proto)
}

/// Returns the enum whose values a numeric field combines.
pub(super) fn flags(message: &str, field: &str) -> Option<&'static str> {
    FLAGS
        .iter()
        .find(|(of, name, _)| *of == message && *name == field)
        .map(|(_, _, flags)| *flags)
}

/// Message, key in YAML, field in protobuf.
const FIELDS: &[(&str, &str, &str)] = &[("LinkStatusSpec", "speedMbit", "speed_megabits")];

/// Message, field, enum of single flags.
const FLAGS: &[(&str, &str, &str)] = &[(
    "LinkStatusSpec",
    "flags",
    "talos.resource.definitions.enums.NethelpersLinkFlag",
)];
