//! Rules of volumes: where they are made, how they are encrypted, and what each kind adds.

use std::collections::HashSet;

use super::cel::{self, Variables};
use super::{items, missing};
use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value;

/// Volumes of the system that can be configured.
const SYSTEM: [&str; 3] = ["STATE", "EPHEMERAL", "IMAGECACHE"];

/// Directories that can be volumes of their own, since 1.14.
const DIRECTORIES: [&str; 4] = ["ETCD", "CRI", "KUBELET", "LOG"];

/// Checks a raw or swap volume.
pub(super) fn sized(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    provisioning(&root.field("provisioning"), Need::All, context, sink);
    encryption(&root.field("encryption"), sink);
}

/// Checks a volume that is provided from outside.
pub(super) fn external(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let kind = root.field("filesystemType");
    if !kind.text().eq_ignore_ascii_case("virtiofs") {
        match kind.is_set() {
            true => {
                sink.error(
                    "bad-value",
                    &kind,
                    "only `virtiofs` can be mounted from outside",
                );
            }
            false => missing(&kind, sink),
        }
        return;
    }
    let virtiofs = root.fields(&["mount", "virtiofs"]);
    let tag = virtiofs.field("tag");
    if !virtiofs.is_set() {
        missing(&virtiofs, sink);
    } else if tag.is_blank() {
        missing(&tag, sink);
    }
}

/// Checks a volume of the user.
pub(super) fn user(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let kind = root.field("volumeType");
    match &*kind.text().to_ascii_lowercase() {
        "" | "partition" => partition(root, Need::All, context, sink),
        "disk" => partition(root, Need::Disk, context, sink),
        "directory" => directory(root, context, sink),
        _ => {
            sink.error(
                "bad-value",
                &kind,
                "one of partition, disk, directory is expected",
            );
        }
    }
}

fn partition(root: &At<'_>, need: Need, context: &Context<'_>, sink: &mut Sink<'_>) {
    provisioning(&root.field("provisioning"), need, context, sink);
    encryption(&root.field("encryption"), sink);
    let filesystem = root.field("filesystem");
    let kind = filesystem.field("type");
    let name = kind.text().to_ascii_lowercase();
    let btrfs = name == "btrfs" && context.at_least(14);
    if !matches!(&*name, "" | "none" | "xfs" | "ext4") && !btrfs {
        sink.error(
            "bad-value",
            &kind,
            format!("a volume of the user cannot have {name}"),
        );
    } else if !matches!(&*name, "" | "none" | "xfs") {
        let (quota, xfs) = (
            filesystem.field("projectQuotaSupport"),
            filesystem.field("xfs"),
        );
        if quota.is_true() {
            sink.error(
                "conflict",
                &quota,
                format!("quotas of projects need xfs, not {name}"),
            );
        }
        if xfs.is_set() {
            sink.error("conflict", &xfs, format!("the filesystem is {name}"));
        }
    }
}

/// Checks a volume that is a directory of another.
fn directory(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let mount = root.field("mount");
    let filesystem = root.field("filesystem");
    let has_filesystem = !is_none(&filesystem.field("type"))
        || filesystem.field("projectQuotaSupport").is_set()
        || filesystem.field("xfs").is_set();
    let no_access_time = mount.field("disableAccessTime");
    let mounted = no_access_time.is_set() || mount.field("secure").is_set();
    let (mount_at, has_mount) = match context.at_least(14) {
        true => (&no_access_time, no_access_time.is_set()),
        false => (&mount, mounted),
    };
    for (at, there) in [
        (
            &root.field("provisioning"),
            is_provisioned(&root.field("provisioning")),
        ),
        (
            &root.field("encryption"),
            is_encrypted(&root.field("encryption")),
        ),
        (&filesystem, has_filesystem),
        (mount_at, has_mount),
    ] {
        if there {
            sink.error(
                "conflict",
                at,
                "a volume of type `directory` cannot have it",
            );
        }
    }
}

/// Checks a volume of the system.
pub(super) fn system(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let name_at = root.field("name");
    let name = name_at.text();
    let is_directory = context.at_least(14) && DIRECTORIES.contains(&&*name);
    if !is_directory && !SYSTEM.contains(&&*name) {
        let more = if context.at_least(14) {
            DIRECTORIES.as_slice()
        } else {
            &[]
        };
        let names: Vec<&str> = SYSTEM.iter().chain(more).copied().collect();
        sink.error(
            "bad-name",
            &name_at,
            format!("one of {} is expected", names.join(", ")),
        );
        return;
    }
    let (made, mount) = (root.field("provisioning"), root.field("mount"));
    let mounted = mount.field("secure").is_set() || mount.field("disableAccessTime").is_set();
    let encrypted = root.field("encryption");
    if name == "STATE" {
        if is_provisioned(&made) {
            sink.error("conflict", &made, "STATE is always made as Talos does it");
        }
        let keys = encrypted.field("keys");
        for key in items(&keys) {
            let lock = key.field("lockToState");
            if lock.is_true() {
                sink.error(
                    "conflict",
                    &lock,
                    "the key of STATE cannot be locked to STATE",
                );
            }
        }
    }
    if context.at_least(14) {
        if mounted && matches!(&*name, "STATE" | "IMAGECACHE") {
            sink.error(
                "conflict",
                &mount,
                format!("{name} is always mounted as Talos does it"),
            );
        }
        let filesystem = root.field("filesystem");
        if name == "IMAGECACHE" && filesystem.field("xfs").is_set() {
            sink.error("conflict", &filesystem, "IMAGECACHE has another filesystem");
        }
        if is_directory && mounted && !is_provisioned(&made) {
            sink.error(
                "conflict",
                &mount,
                "only a partition of its own (`provisioning`) can be mounted in its own way",
            );
        }
    }
    provisioning(&made, Need::Nothing, context, sink);
    encryption(&encrypted, sink);
}

/// Checks a logical volume of LVM.
pub(super) fn logical_volume(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let kind = root.field("type").text().to_ascii_lowercase();
    for (key, kinds, least) in [
        ("mirrors", ["raid1", "raid10"], 1),
        ("stripes", ["raid0", "raid10"], 2),
    ] {
        let at = root.field(key);
        let Some(count) = at.number() else { continue };
        if !kinds.contains(&&*kind) {
            sink.error(
                "conflict",
                &at,
                format!("it is for the types {}", kinds.join(" and ")),
            );
        } else if count < least {
            sink.error("bad-value", &at, format!("it must be at least {least}"));
        }
    }
    let made = root.field("provisioning");
    let (min, max) = (made.field("minSize"), made.field("maxSize"));
    if max.text().starts_with('-') {
        sink.error("bad-value", &max, "it must not be negative");
    }
    if let (Some(low), Some(high)) = (bytes(&min), bytes(&max))
        && low > high
    {
        sink.error("bad-value", &min, "it is more than `maxSize`");
    }
}

/// What provisioning must say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Nothing.
    Nothing,
    /// A disk, and no size.
    Disk,
    /// A disk and a size.
    All,
}

fn provisioning(at: &At<'_>, need: Need, context: &Context<'_>, sink: &mut Sink<'_>) {
    let matched = at.fields(&["diskSelector", "match"]);
    cel::check(
        &matched,
        Variables::Disk,
        need != Need::Nothing,
        context,
        sink,
    );
    let (min, max, grow) = (at.field("minSize"), at.field("maxSize"), at.field("grow"));
    if need == Need::Disk {
        let set = [
            (&min, !min.is_blank()),
            (&max, !max.is_blank()),
            (&grow, grow.is_set()),
        ];
        for (at, _) in set.into_iter().filter(|(_, set)| *set) {
            sink.error("conflict", at, "a whole disk has the size it has");
        }
        return;
    }
    if need == Need::All && min.is_blank() && max.is_blank() {
        sink.error("missing-field", at, "`minSize` or `maxSize` must be set");
    }
    if !context.at_least(12) && max.text().starts_with('-') {
        sink.error("bad-value", &max, "it must not be negative");
    }
    if min.text().starts_with('-') {
        sink.error("bad-value", &min, "it must not be negative");
    } else if let (Some(low), Some(high)) = (bytes(&min), bytes(&max))
        && low > high
        && !max.text().starts_with('-')
    {
        sink.error("bad-value", &min, "it is more than `maxSize`");
    }
}

/// Returns the bytes of a size, whatever its sign; none for a share of the disk.
fn bytes(at: &At<'_>) -> Option<u64> {
    let text = at.text();
    value::size(text.strip_prefix('-').unwrap_or(&text))
}

fn encryption(at: &At<'_>, sink: &mut Sink<'_>) {
    if !is_encrypted(at) {
        return;
    }
    let (provider, keys) = (at.field("provider"), at.field("keys"));
    if is_none(&provider) {
        sink.error("missing-field", &provider, "keys need a provider: luks2");
    }
    let mut slots: HashSet<i128> = HashSet::new();
    for key in items(&keys) {
        let slot = key.field("slot");
        let number = slot.number().unwrap_or(0);
        if !slots.insert(number) {
            sink.error(
                "duplicate",
                &slot,
                format!("slot {number} is taken by another key"),
            );
        }
        if !["static", "nodeID", "kms", "tpm"]
            .iter()
            .any(|kind| key.field(kind).is_set())
        {
            sink.error(
                "missing-field",
                &key,
                "one of static, nodeID, kms, tpm must be set",
            );
        }
        let registers = key.fields(&["tpm", "options", "pcrs"]);
        for register in items(&registers) {
            if register
                .number()
                .is_some_and(|number| !(0..=23).contains(&number))
            {
                sink.error(
                    "bad-value",
                    &register,
                    "a register of a TPM is between 0 and 23",
                );
            }
        }
    }
    if slots.is_empty() {
        missing(&keys, sink);
    }
}

/// Returns whether a word is absent or `none`.
pub(super) fn is_none(at: &At<'_>) -> bool {
    at.is_blank() || at.text().eq_ignore_ascii_case("none")
}

/// Returns whether a volume is encrypted in a way that counts.
fn is_encrypted(at: &At<'_>) -> bool {
    let keys = at.field("keys");
    !is_none(&at.field("provider")) || items(&keys).next().is_some()
}

/// Returns whether it is said where a volume is made.
fn is_provisioned(at: &At<'_>) -> bool {
    at.field("grow").is_set()
        || ["minSize", "maxSize"]
            .iter()
            .any(|key| !at.field(key).is_blank())
        || !at.fields(&["diskSelector", "match"]).is_blank()
}
