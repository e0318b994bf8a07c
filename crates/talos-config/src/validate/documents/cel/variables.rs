//! What expressions can speak of.

use super::types::Type;

/// The names that an expression can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Variables {
    /// Disks, for a new volume.
    Disk,
    /// Volumes that are there.
    Volume,
    /// Volumes that can be members of an array or group.
    Member,
    /// Network links.
    Link,
    /// How short memory is.
    Pressure,
    /// What a control group has of it; gives a rank.
    Ranking,
}

const UNITS: [&str; 12] = [
    "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "kB", "MB", "GB", "TB", "PB", "EB",
];

const CLASSES: [&str; 5] = [
    "Besteffort",
    "Burstable",
    "Guaranteed",
    "Podruntime",
    "System",
];

impl Variables {
    /// Returns the type of a name.
    pub(super) fn of(self, name: &str) -> Option<Type> {
        if self != Self::Link && UNITS.contains(&name) {
            return Some(Type::Uint);
        }
        let oom = matches!(self, Self::Pressure | Self::Ranking);
        if oom && CLASSES.contains(&name) {
            return Some(Type::Int);
        }
        match (self, name) {
            (Self::Disk | Self::Volume | Self::Member, "disk") => Some(Type::Message("DiskSpec")),
            (Self::Volume | Self::Member, "volume") => Some(Type::Message("DiscoveredVolumeSpec")),
            (Self::Disk | Self::Member, "system_disk") => Some(Type::Bool),
            (Self::Member, "volume_id") => Some(Type::Text),
            (Self::Link, "link") => Some(Type::Message("LinkStatusSpec")),
            (Self::Pressure, _) => pressure(name),
            (Self::Ranking, "memory_max" | "memory_current" | "memory_peak") => {
                Some(Type::optional(Type::Uint))
            }
            (Self::Ranking, "path") => Some(Type::Text),
            (Self::Ranking, "class") => Some(Type::Int),
            _ => None,
        }
    }

    /// Returns whether values that may be absent can be spoken of.
    pub(super) fn has_optionals(self) -> bool {
        matches!(self, Self::Pressure | Self::Ranking)
    }

    /// Returns what a function of these variables alone takes and gives.
    pub(super) fn function(self, name: &str) -> Option<(Vec<Type>, Type)> {
        match (self, name) {
            (Self::Disk | Self::Member | Self::Link, "glob") => {
                Some((vec![Type::Text, Type::Text], Type::Bool))
            }
            (Self::Link, "mac") => Some((vec![Type::Bytes], Type::Text)),
            (Self::Pressure, "multiply_qos_vectors") => {
                let vector = Type::map(Type::Any, Type::Double);
                Some((vec![vector.clone(), vector], Type::Double))
            }
            _ => None,
        }
    }
}

/// Returns the type of a measure: `d_` is its change, `qos_` one value for each class.
fn pressure(name: &str) -> Option<Type> {
    if name == "time_since_trigger" {
        return Some(Type::Duration);
    }
    let measure = name.strip_prefix("d_").unwrap_or(name);
    let (classes, measure) = match measure.strip_prefix("qos_memory_") {
        Some(measure) => (true, measure),
        None => (false, measure.strip_prefix("memory_")?),
    };
    let stalled = measure
        .strip_prefix("some_")
        .or_else(|| measure.strip_prefix("full_"));
    let known = match stalled {
        Some(span) => matches!(span, "avg10" | "avg60" | "avg300" | "total"),
        None => classes && matches!(measure, "current" | "peak" | "max"),
    };
    known.then(|| match classes {
        true => Type::map(Type::Int, Type::Double),
        false => Type::Double,
    })
}

/// Returns the type of a field of a message, as a version has it.
pub(super) fn field(message: &str, name: &str, version: &str) -> Option<Type> {
    const ROWS: &str = include_str!("../../../../data/selector-fields.tsv");
    ROWS.lines().skip(1).find_map(|row| {
        let mut columns = row.split('\t');
        let mut column = || columns.next().unwrap_or_default();
        let (of, field, kind, versions) = (column(), column(), column(), column());
        let known = versions == "all" || versions.split(',').any(|known| known == version);
        (of == message && field == name && known).then(|| named(kind))
    })
}

fn named(kind: &'static str) -> Type {
    match kind {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        _ => match kind.strip_prefix("list ") {
            Some(of) => Type::list(named(of)),
            None => Type::Message(kind),
        },
    }
}
