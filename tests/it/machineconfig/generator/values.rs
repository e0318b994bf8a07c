//! Values that a field of a type decodes from.

use super::random::Random;
use super::tree::Tree;

/// Returns a scalar for a field of a type; `place` is the kind of document and the path in it.
pub(super) fn scalar(random: &mut Random, of: &str, place: &str) -> Tree {
    let name = place.rsplit('.').next().unwrap_or(place);
    let main = place.starts_with("v1alpha1.");
    let text = match of {
        "bool" => return boolean(random),
        "bytes" if main => {
            return Tree::text(random.one(&[
                "LS0tLS1CRUdJTg==",
                "c2VjcmV0",
                "MTIzNDU2Nzg5MA==",
                "",
            ]));
        }
        "bytes" => random.one(&["aa:bb:cc:dd:ee:01", "00:11:22:33:44:55", "0002ab11"]),
        "int" | "int32" | "int64" | "uint" | "uint8" | "uint16" | "uint32" | "uint64" => {
            return number(random, of);
        }
        "int64(Duration)" => {
            random.one(&["10s", "1m30s", "168h0m0s", "0s", "1h", "500ms", "2h45m"])
        }
        "uint64(DiskSize)" => {
            return pick(
                random,
                &["10GB", "100 MB", "1.5TB", "512MiB"],
                &["1073741824", "0"],
            );
        }
        "uint32(FileMode)" | "uint32(EtcFileMode)" => {
            return Tree::raw(random.one(&["0o644", "0644", "0o600", "420", "0o1777", "0"]));
        }
        "ports" => {
            return pick(
                random,
                &["1000-2000", "443-443", "50000-50001"],
                &["80", "443", "6443"],
            );
        }
        "match" => random.one(&[">= 10GB", "<= 1TB", "10GB", "> 500MB", "== 2TB"]),
        "url" => return url(random, name, place),
        "text(Addr)" => random.one(&[
            "10.0.0.1",
            "192.168.1.254",
            "fd00::1",
            "1.1.1.1",
            "2001:db8::53",
        ]),
        "text(Prefix)" => random.one(&[
            "10.0.0.0/8",
            "192.168.1.7/24",
            "fd00::/64",
            "0.0.0.0/0",
            "172.20.0.5/32",
        ]),
        "text(AddrPort)" => random.one(&["10.0.0.1:51820", "[fd00::1]:51820", "192.168.1.254:500"]),
        "text(ByteSize)" => {
            return pick(random, &["10GiB", "500MB", "1TB", "64 MiB"], &["1048576"]);
        }
        "text(Size)" => return pick(random, &["10GiB", "80%", "25%", "1TB"], &["1048576"]),
        "text(Expression)" => expression(random, place),
        of if of.starts_with("text(") || of.starts_with("string(") => {
            return word(random, of, place);
        }
        _ => return string(random, name, place),
    };
    Tree::text(text)
}

fn pick(random: &mut Random, texts: &[&str], raws: &[&str]) -> Tree {
    let at = random.below(texts.len() + raws.len());
    match texts.get(at) {
        Some(text) => Tree::text(text),
        None => Tree::raw(raws[at - texts.len()]),
    }
}

fn boolean(random: &mut Random) -> Tree {
    match random.percent(4) {
        true => Tree::raw(random.one(&["yes", "off", "True", "no", "on"])),
        false => Tree::raw(random.one(&["true", "false"])),
    }
}

fn number(random: &mut Random, of: &str) -> Tree {
    if random.percent(12) {
        return Tree::raw("0");
    }
    if random.percent(8) {
        return Tree::raw(random.one(&["0x10", "0o17", "0b101", "1_0", "017", "+12"]));
    }
    let last = match of {
        "uint8" => 255,
        "uint16" => 4094,
        _ => 70_000,
    };
    Tree::raw(&random.between(1, last).to_string())
}

fn expression(random: &mut Random, place: &str) -> &'static str {
    match place.split('.').next().unwrap_or_default() {
        "OOMConfig" if place.ends_with("cgroupRankingExpression") => random.one(&[
            "memory_max.hasValue() ? 0.0 : 1.0",
            "double(memory_current.orValue(0u))",
        ]),
        "OOMConfig" => random.one(&[
            "memory_full_avg10 > 12.0",
            "memory_full_avg10 > 5.0 && time_since_trigger > duration(\"500ms\")",
        ]),
        "LinkAliasConfig" => random.one(&[
            "link.driver == \"virtio_net\"",
            "mac(link.permanent_addr) == \"00:1a:2b:3c:4d:5e\"",
        ]),
        "ExistingVolumeConfig" | "LVMVolumeGroupConfig" | "RAIDArrayConfig" => random.one(&[
            "volume.partition_label == \"data\"",
            "volume.name == \"xfs\" && disk.size > 10u * GB",
        ]),
        _ => random.one(&[
            "system_disk",
            "!system_disk && disk.transport == \"nvme\"",
            "disk.dev_path == \"/dev/sda\"",
            "disk.size > 100u * GB && disk.size < 1u * TB",
        ]),
    }
}

/// Returns one of the words of an enumeration.
fn word(random: &mut Random, of: &str, place: &str) -> Tree {
    let words: &[&str] = match of.trim_start_matches("text").trim_start_matches("string") {
        "(BondMode)" => &[
            "balance-rr",
            "active-backup",
            "802.3ad",
            "balance-alb",
            "broadcast",
        ],
        "(BondXmitHashPolicy)" => &["layer2", "layer3+4", "layer2+3", "encap2+3"],
        "(ARPValidate)" => &["none", "active", "backup", "all"],
        "(ARPAllTargets)" => &["any", "all"],
        "(LACPRate)" => &["slow", "fast"],
        "(FailOverMAC)" => &["none", "active", "follow"],
        "(ADSelect)" => &["stable", "bandwidth", "count"],
        "(ADLACPActive)" => &["on", "off"],
        "(PrimaryReselect)" => &["always", "better", "failure"],
        "(AutoHostnameKind)" => &["stable", "off"],
        "(ClientIdentifier)" => &["none", "mac", "duid"],
        "(DNSProtocol)" => &["Do53", "DoT", "DoH"],
        "(DefaultAction)" => &["accept", "block"],
        "(EncryptionProviderType)" => &["luks2"],
        "(FilesystemType)" if place.starts_with("External") => &["virtiofs"],
        "(FilesystemType)" => &["xfs", "ext4"],
        "(LVMLogicalVolumeType)" => &["linear", "raid0", "raid1", "raid10"],
        "(MDLevel)" => &["raid1"],
        "(MDMetadata)" => &["1.0", "1.2"],
        "(Protocol)" => &["tcp", "udp", "icmp", "icmpv6"],
        "(RoutingRuleAction)" => &["unicast", "blackhole", "unreachable", "prohibit"],
        "(RoutingTable)" => &["main", "local", "default", "unspec", "100", "7"],
        "(VLANProtocol)" => &["802.1q", "802.1ad"],
        "(VolumeType)" => &["partition", "disk", "directory"],
        "(WOLMode)" => &["phy", "unicast", "multicast", "broadcast"],
        "(ContainerNetworkMode)" => &["none", "host"],
        "(ContainerSecurityProfile)" => &["restricted", "privileged"],
        "(InstallDiskType)" => &["ssd", "hdd", "nvme", "sd"],
        other => panic!("no words are known for {other}"),
    };
    let word = random.one(words);
    match word.parse::<f64>().is_ok() && random.percent(70) {
        true => Tree::raw(word),
        false => Tree::text(word),
    }
}

fn url(random: &mut Random, name: &str, place: &str) -> Tree {
    if place.starts_with("KmsgLogConfig") || place.contains("logging") {
        return Tree::text(random.one(&[
            "tcp://10.0.0.1:514",
            "udp://logs.example.com:6000/",
            "tcp://[fd00::1]:514/a",
        ]));
    }
    let text = match name {
        "apiUrl" => random.one(&[
            "https://siderolink.example.com?jointoken=abc",
            "grpc://10.0.0.1:8081",
            "https://a.example.com/x?k=v",
        ]),
        _ => random.one(&[
            "https://10.5.0.2:6443",
            "https://cp.example.com:6443",
            "https://[fd00::1]:6443",
            "https://cp.example.com:6443/",
            "https://cp.example.com/prefix?q=1",
            "https://user:pw@cp.example.com/p#part",
            "http://mirror.example.com",
            "https://mirror.example.com/v2/docker%20io",
        ]),
    };
    Tree::text(text)
}

/// Returns a string that suits the name of the field, now and then an odd one.
fn string(random: &mut Random, name: &str, place: &str) -> Tree {
    if random.percent(6) && !matches!(name, "type" | "version") {
        return odd(random);
    }
    let texts: &[&str] = match name {
        "version" if place == "v1alpha1.version" => &["v1alpha1"],
        "type" if place == "v1alpha1.machine.type" => &["controlplane", "worker", "init"],
        "type" if place.contains("authorizationConfig") || place.contains("KubeAuthorizer") => {
            &["Node", "RBAC", "Webhook"]
        }
        "image" => &[
            "ghcr.io/siderolabs/kubelet:v1.34.0",
            "registry.k8s.io/kube-proxy:v1.34.0",
            "docker.io/a/b@sha256:ab",
        ],
        "interface" | "link" | "parent" | "master" | "links" | "interfaces" | "iifName"
        | "oifName" => &["eth0", "eth1", "bond0", "br0", "enp0s31f6"],
        "addresses" | "cidr" | "network" | "podSubnets" | "serviceSubnets" | "validSubnets"
        | "advertisedSubnets" | "listenSubnets" | "subnet" | "allowedIPs" | "advertise" => &[
            "10.244.0.0/16",
            "10.96.0.0/12",
            "192.168.1.7/24",
            "fd00::/108",
            "0.0.0.0/0",
        ],
        "gateway" | "source" | "nameservers" | "ip" | "clusterDNS" | "arpIPTarget" => {
            &["10.0.0.1", "1.1.1.1", "fd00::53", "192.168.1.254"]
        }
        "servers" => &["time.cloudflare.com", "/dev/ptp0", "10.0.0.1"],
        "hardwareAddr" | "permanentAddr" => &["aa:bb:cc:*", "00:11:22:33:44:55"],
        "token" => &["abcdef.0123456789abcdef", "zzzzzz.9999999999999999"],
        "endpoint" => &[
            "10.0.0.1:4443",
            "https://discovery.talos.dev/",
            "tcp://10.0.0.1:514",
        ],
        "name" | "vrf" | "volumeGroup" => &["PodSecurity", "alpha", "beta", "node-1.example.com"],
        "mountPath" | "path" | "destination" | "hostPath" | "mountpoint" => &[
            "/var/lib/a",
            "/etc/b.conf",
            "/var/mnt/c",
            "/usr/local/etc/d d",
        ],
        "disk" | "device" => &["/dev/sda", "/dev/nvme0n1", "/dev/watchdog0"],
        "op" => &["create", "append", "overwrite"],
        "content" | "contents" | "manifest" | "certificates" | "certificate" | "ca" | "cert"
        | "passphrase" => &[
            "one line",
            "first: 1\nsecond: 2\n",
            "#!/bin/sh\n\necho \"hi\"\n",
            "no newline\nat the end",
            "-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----\n",
            "two at the end\n\n",
            "tab\there\n",
        ],
        "environment" => &["A=b", "PATH=/bin:/usr/bin", "EMPTY="],
        "certSANs" | "certExtraSANs" | "searchDomains" | "domains" | "aliases" | "hostnames" => {
            &["cp.example.com", "10.0.0.9", "a.b.c", "*.example.com"]
        }
        "rules" => &[
            "SUBSYSTEM==\"drm\", KERNEL==\"renderD*\", GROUP=\"44\", MODE=\"0660\"",
            "A==\"b\"",
        ],
        "provider" => &["luks2"],
        "extraKernelArgs" | "args" | "extraArgs" => &[
            "console=ttyS0",
            "-net.ifnames",
            "--iface-regex=^eth.*",
            "a b",
        ],
        "mode" => &["802.3ad", "active-backup", "ipvs", "iptables"],
        "hostname" => &["node-1", "node-2.example.com", "n"],
        _ => &[
            "alpha",
            "beta",
            "gamma-3",
            "some text here",
            "a/b.c",
            "x=y",
            "*",
            "-dash",
            "Größe",
        ],
    };
    Tree::text(random.one(texts))
}

/// Returns a string that a YAML reader may take for something else, or that has to be written with care.
fn odd(random: &mut Random) -> Tree {
    match random.below(3) {
        // Read as strings, because the field is one.
        0 => Tree::raw(random.one(&[
            "yes",
            "off",
            "No",
            "y",
            "0644",
            "0o17",
            "1_000",
            "1.10",
            "2024-01-02",
            "12:30:45",
            "0x1F",
            "1e3",
            ".5",
            "v1",
            "12345678901234567890123",
            "on",
            "\"\"",
            "''",
            "'it''s'",
            "\"\\u00e9\\t\\x41\"",
        ])),
        1 => Tree::quoted(random.one(&[
            "yes",
            "off",
            "0644",
            "1_000",
            "2024-01-02",
            "null",
            "~",
            "true",
            "1.10",
            "",
            " padded ",
            "12:30:45",
        ])),
        _ => Tree::text(random.one(&[
            "a: b",
            "# no comment",
            "with # hash",
            "- dash",
            "[x]",
            "{y}",
            "*star",
            "&amp",
            "!bang",
            "%percent",
            "@at",
            "`tick`",
            "quote\"d",
            "it's",
            "back\\slash",
            "colon:",
            "a,b",
            "trailing\n",
            "\ttab",
            "ü€😀",
            "******",
            "?",
            "? q",
            "...",
            "---",
            "=",
            "<<",
            "line one\nline two",
            "null",
            "1_000",
            "0_7",
        ])),
    }
}

/// Returns a key of a free map.
pub(super) fn key(random: &mut Random, name: &str) -> &'static str {
    match name {
        "nodeLabels" | "nodeAnnotations" | "labels" | "annotations" => random.one(&[
            "node.kubernetes.io/exclude-from-external-load-balancers",
            "example.com/zone",
            "rack",
            "a.b.c/d",
        ]),
        "nodeTaints" | "taints" => {
            random.one(&["node-role.kubernetes.io/control-plane", "example.com/gpu"])
        }
        "sysctls" | "sysfs" | "params" => {
            random.one(&["net.core.somaxconn", "vm.nr_hugepages", "kernel.x"])
        }
        "mirrors" | "config" => random.one(&["docker.io", "ghcr.io", "*", "registry.local:5000"]),
        "extraArgs" => random.one(&["feature-gates", "v", "audit-log-path", "runtime-config"]),
        "features" => random.one(&["tx-checksum-ipv4", "rx-gro", "tx-tcp-segmentation"]),
        "requests" | "limits" => random.one(&["cpu", "memory"]),
        _ => random.one(&[
            "alpha",
            "beta",
            "HTTP_PROXY",
            "x-y",
            "rules",
            "kind",
            "name",
        ]),
    }
}

/// Returns anything, as free objects hold it.
pub(super) fn anything(random: &mut Random, depth: usize) -> Tree {
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 => boolean_word(random),
        1 => Tree::raw(&random.between(0, 99_999).to_string()),
        2 => Tree::raw(random.one(&[
            "1.5", "0.1", "1e3", "-7", "0x1f", "0o17", "null", "~", "2.50",
        ])),
        3 | 4 => string(random, "", "free"),
        5 => Tree::quoted(random.one(&["yes", "0644", "1_000", "2024-01-02", ""])),
        6 => Tree::List(
            (0..random.between(0, 3))
                .map(|_| anything(random, depth - 1))
                .collect(),
        ),
        _ => object(random, depth - 1),
    }
}

fn boolean_word(random: &mut Random) -> Tree {
    Tree::raw(random.one(&["true", "false"]))
}

/// Returns a mapping of anything.
pub(super) fn object(random: &mut Random, depth: usize) -> Tree {
    let mut entries: Vec<(String, Tree)> = Vec::new();
    for _ in 0..random.between(1, 3) {
        let key = key(random, "");
        if entries.iter().all(|(known, _)| known != key) {
            entries.push((key.to_owned(), anything(random, depth)));
        }
    }
    Tree::Map(entries)
}
