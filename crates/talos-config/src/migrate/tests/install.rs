//! Disks and what is installed on them.

use expect_test::expect;

use super::{check, refuses};

#[test]
fn encrypted_volumes_and_disks() {
    check(
        r#"machine:
    type: worker
    systemDiskEncryption:
        state:
            keys: [{nodeID: {}, slot: 0}]
        ephemeral:
            provider: luks2
            keys:
                - static: {passphrase: 0123}
                  slot: 1
            cipher: aes-xts-plain64
            keySize: 512
            options: [no_read_workqueue]
"#,
        expect![[r#"
            machine:
                type: worker
            --- VolumeConfig/STATE
            encryption:
                keys:
                    - nodeID: {}
                      slot: 0
                provider: luks2
            --- VolumeConfig/EPHEMERAL
            encryption:
                provider: luks2
                keys:
                    - static:
                          passphrase: "0123"
                      slot: 1
                cipher: aes-xts-plain64
                keySize: 512
                options:
                    - no_read_workqueue
        "#]],
    );
    refuses(
        r#"machine:
    disks:
        - device: /dev/sdb
          partitions: [{mountpoint: /var/mnt/extra}]
    systemDiskEncryption:
        state: {provider: luks9, keys: [{nodeID: {}, slot: 0}]}
"#,
        expect![[r#"
            line 3: machine.disks[0]: no document takes over partitions that Talos made here; UserVolumeConfig makes new ones
            line 6: machine.systemDiskEncryption.state.provider: is not luks2, the only one there is
        "#]],
    );
}

#[test]
fn installation() {
    check(
        r#"machine:
    type: worker
    install:
        disk: /dev/sda
        image: ghcr.io/siderolabs/installer:v1.14.1
        bootloader: true
        extensions: []
        legacyBIOSSupport: false
"#,
        expect![[r#"
            machine:
                type: worker
            --- UnattendedInstallConfig
            installer:
                image: ghcr.io/siderolabs/installer:v1.14.1
            provisioning:
                diskSelector:
                    match: disk.dev_path == "/dev/sda"
                wipe: false
            (with an UnattendedInstallConfig GRUB takes the kernel arguments of the image; machine.install without grubUseUKICmdline did not)
        "#]],
    );
    check(
        r#"machine:
    type: worker
    install:
        diskSelector: {size: ">= 1.5TB", model: WDC*, type: nvme, busPath: /pci*}
        wipe: true
        grubUseUKICmdline: true
"#,
        expect![[r#"
            machine:
                type: worker
            --- UnattendedInstallConfig
            provisioning:
                diskSelector:
                    match: disk.size >= 1500000000000u && glob("WDC*", disk.model) && disk.transport != "" && disk.transport == "nvme" && glob("/pci*", disk.bus_path) && !disk.readonly && !disk.cdrom
                wipe: true
        "#]],
    );
    refuses(
        r#"machine:
    install:
        diskSelector: {name: sda, size: much}
        extraKernelArgs: [console=ttyS0]
        extensions: [{image: ghcr.io/siderolabs/gvisor:1}]
        legacyBIOSSupport: true
        grubUseUKICmdline: false
"#,
        expect![[r#"
            line 3: machine.install.diskSelector.name: Talos does not select by this
            line 3: machine.install.diskSelector.size: is no size
            line 4: machine.install.extraKernelArgs: kernel arguments come with the image; build one with them
            line 5: machine.install.extensions: extensions come with the image; build one with them
            line 6: machine.install.legacyBIOSSupport: no document marks the partition for an old BIOS
            line 7: machine.install.grubUseUKICmdline: GRUB always takes the kernel arguments of the image with an UnattendedInstallConfig
        "#]],
    );
    refuses(
        "machine:\n    install:\n        image: a:b\n",
        expect![[r#"
        line 2: machine.install: names no disk, which an UnattendedInstallConfig needs
    "#]],
    );
}
