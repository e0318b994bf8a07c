//! Installation and disks.

use serde_json::Value;

use super::selectors;
use super::work::{Field, Work};

pub(super) fn all(work: &mut Work<'_>) {
    encryption(work);
    disks(work);
    if work.target.has(14) {
        install(work);
        files(work);
    }
}

fn encryption(work: &mut Work<'_>) {
    const KIND: &str = "VolumeConfig";
    for (key, name) in [("state", "STATE"), ("ephemeral", "EPHEMERAL")] {
        let Some(section) = work.at(&["machine", "systemDiskEncryption", key]) else {
            continue;
        };
        for (key, field) in work.map(&section) {
            let to = ["encryption", key.as_str()];
            match key.as_str() {
                "provider" => match work.text(&field) {
                    Some(text) if text.is_empty() => work.drop(&field, "it is the default"),
                    Some(text) if text != "luks2" => {
                        work.refuse(&field, "is not luks2, the only one there is");
                    }
                    Some(text) => work.put(&field, KIND, name, &to, text.into()),
                    None => {}
                },
                "keys" => {
                    let keys = work
                        .list(&field)
                        .iter()
                        .map(|key| one_key(work, key))
                        .collect();
                    work.put(&field, KIND, name, &to, keys);
                }
                "cipher" | "options" => work.copy(&field, KIND, name, &to),
                "keySize" | "blockSize" => work.put(&field, KIND, name, &to, field.value()),
                _ => work.refuse(&field, "a VolumeConfig has no such setting"),
            }
        }
        work.imply(KIND, name, &["encryption", "provider"], "luks2".into());
    }
}

/// Returns a key of an encrypted volume, whose slot is a number and whose passphrase is text.
fn one_key(work: &Work<'_>, key: &Field<'_>) -> Value {
    let mut value = work.as_written(key);
    if let (Some(slot), Some(value)) = (key.at(&["slot"]), value.as_object_mut()) {
        value.insert("slot".to_owned(), slot.value());
    }
    value
}

/// Partitions of `machine.disks` are known by their position; no document adopts them.
fn disks(work: &mut Work<'_>) {
    let Some(field) = work.at(&["machine", "disks"]) else {
        return;
    };
    for disk in work.list(&field) {
        work.refuse(
            &disk,
            "no document takes over partitions that Talos made here; UserVolumeConfig makes new ones",
        );
    }
}

fn install(work: &mut Work<'_>) {
    const KIND: &str = "UnattendedInstallConfig";
    let Some(install) = work.at(&["machine", "install"]) else {
        return;
    };
    let selector = install.at(&["diskSelector"]);
    let disk = install
        .at(&["disk"])
        .filter(|field| field.node.as_str() != Some(""));
    for (key, field) in work.map(&install) {
        match key.as_str() {
            "image" => match field.node.as_str() {
                Some("") => work.drop(&field, "it is empty"),
                _ => work.copy(&field, KIND, "", &["installer", "image"]),
            },
            "disk" if disk.is_none() => work.drop(&field, "it is empty"),
            "disk" => {
                if let Some(text) = work.text(&field) {
                    let expression = format!("disk.dev_path == {}", selectors::quoted(&text));
                    if text.starts_with("/dev/disk/") {
                        work.refuse(&field, "a link to a device has no equal expression; name the device or use a diskSelector");
                    } else if selector.is_some() {
                        work.refuse(&field, "stands beside a diskSelector, and a document has one");
                    } else {
                        put_disk(work, &field, expression);
                    }
                }
            }
            "diskSelector" => {
                if let Some(expression) = selectors::disk(work, &field) {
                    put_disk(work, &field, expression);
                }
            }
            "wipe" => {
                if let Some(flag) = work.flag(&field) {
                    work.put(&field, KIND, "", &["provisioning", "wipe"], flag.into());
                }
            }
            "grubUseUKICmdline" => match work.flag(&field) {
                Some(true) => work.drop(&field, "it is always so"),
                Some(false) => work.refuse(&field, "GRUB always takes the kernel arguments of the image with an UnattendedInstallConfig"),
                None => {}
            },
            "legacyBIOSSupport" => match work.flag(&field) {
                Some(false) => work.drop(&field, "it is always so"),
                Some(true) => work.refuse(&field, "no document marks the partition for an old BIOS"),
                None => {}
            },
            "bootloader" => work.drop(&field, "it never had an effect"),
            "extraKernelArgs" | "extensions" if field.node.is_empty() => work.drop(&field, "it is empty"),
            "extraKernelArgs" => work.refuse(&field, "kernel arguments come with the image; build one with them"),
            "extensions" => work.refuse(&field, "extensions come with the image; build one with them"),
            _ => work.refuse(&field, "an UnattendedInstallConfig has no such setting"),
        }
    }
    if disk.is_none() && selector.is_none() {
        work.refuse(
            &install,
            "names no disk, which an UnattendedInstallConfig needs",
        );
        return;
    }
    if install.at(&["wipe"]).is_none() {
        work.imply(KIND, "", &["provisioning", "wipe"], false.into());
    }
    if install.at(&["grubUseUKICmdline"]).is_none() {
        work.notes.push(
            "with an UnattendedInstallConfig GRUB takes the kernel arguments of the image; machine.install without grubUseUKICmdline did not"
                .to_owned(),
        );
    }
}

fn put_disk(work: &mut Work<'_>, field: &Field<'_>, expression: String) {
    let to = ["provisioning", "diskSelector", "match"];
    work.put(field, "UnattendedInstallConfig", "", &to, expression.into());
}

/// Of the files only the customization of the container runtime has a document that writes it to the same place.
fn files(work: &mut Work<'_>) {
    const CRI: &str = "/etc/cri/conf.d/20-customization.part";
    let Some(field) = work.at(&["machine", "files"]) else {
        return;
    };
    for file in work.list(&field) {
        let path = file
            .at(&["path"])
            .and_then(|field| work.text(&field))
            .unwrap_or_default();
        let op = file
            .at(&["op"])
            .and_then(|field| work.text(&field))
            .unwrap_or_default();
        let content = file.at(&["content"]);
        match content {
            Some(content) if path == CRI && op == "create" => {
                if work.has_draft("CRICustomizationConfig", "20-customization") {
                    work.refuse(&file, "another entry writes the file too");
                    continue;
                }
                work.copy(&content, "CRICustomizationConfig", "20-customization", &["content"]);
                for key in ["path", "op", "permissions"] {
                    if let Some(below) = file.at(&[key]) {
                        work.taken.push(below.path);
                    }
                }
            }
            _ => work.refuse(
                &file,
                format!("no document writes the file {path:?}; EtcFileConfig writes below /etc, images and extensions bring others"),
            ),
        }
    }
}
