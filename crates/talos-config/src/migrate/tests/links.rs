//! Interfaces.

use expect_test::expect;

use super::{check, drops, refuses};

#[test]
fn addresses_and_routes() {
    check(
        r#"machine:
    type: worker
    network:
        interfaces:
            # uplink
            - interface: eth0 # left port
              addresses:
                  - 10.0.0.5/24 # first
                  - 10.0.0.6
                  - fd00::1
              routes:
                  # default
                  - network: 0.0.0.0/0
                    gateway: 10.0.0.1
                    metric: 0
                  - gateway: fe80::1
                  - network: 10.9.0.0/16
                    gateway: 10.0.0.2
                    source: 10.0.0.5
                    metric: 2048
                    mtu: 1400
              mtu: 9000
              ignore: false
            - interface: lo
              cidr: 169.254.0.1
              mtu: 0
"#,
        expect![[r#"
            machine:
                type: worker
            ---
            # uplink
            # left port
            apiVersion: v1alpha1
            kind: LinkConfig
            name: eth0
            mtu: 9000
            addresses:
                - address: 10.0.0.5/24 # first
                - address: 10.0.0.6/32
                - address: fd00::1/128
            routes:
                # default
                - gateway: 10.0.0.1
                - gateway: fe80::1
                - destination: 10.9.0.0/16
                  gateway: 10.0.0.2
                  source: 10.0.0.5
                  metric: 2048
                  mtu: 1400
            --- LinkConfig/lo
            addresses:
                - address: 169.254.0.1/32
            (links that no document names got addresses by DHCP so far and will not any more: Talos stops that at the first document for a link)
        "#]],
    );
    refuses(
        r#"machine:
    network:
        interfaces:
            - interface: eth0
              addresses: [0.0.0.0/0, x]
              routes:
                  - network: 0.0.0.0/0
                  - network: "::/0"
                    gateway: 10.0.0.1
                  - network: 10.0.0.0/33
                    gateway: 10.0.0.1
            - interface: eth0
            - addresses: [10.0.0.1/8]
            - interface: eth1
              ignore: true
            - interface: eth2
              frobnicate: 1
"#,
        expect![[r#"
            line 5: machine.network.interfaces[0].addresses[0]: is no address
            line 5: machine.network.interfaces[0].addresses[1]: is no address
            line 7: machine.network.interfaces[0].routes[0]: a default route without a gateway has no equal
            line 8: machine.network.interfaces[0].routes[1]: a default route by a gateway of the other family has no equal
            line 10: machine.network.interfaces[0].routes[2]: has something that is no address
            line 12: machine.network.interfaces[1]: another entry has the interface eth0 too
            line 13: machine.network.interfaces[2]: has to have either `interface` or `deviceSelector`
            line 15: machine.network.interfaces[3].ignore: no document makes Talos ignore a link
            line 17: machine.network.interfaces[4].frobnicate: Talos 1.14 has no such field
        "#]],
    );
}

#[test]
fn dhcp_and_shared_addresses() {
    check(
        r#"machine:
    type: controlplane
    network:
        interfaces:
            - interface: eth0
              dhcp: true
              vip: {ip: 10.0.0.100}
            - interface: eth1
              dhcp: true
              dhcpOptions: {routeMetric: 2048, ipv4: false, ipv6: true, duidv6: "00:01:ab"}
              vip: {ip: 10.0.0.101, hcloud: {apiToken: secret}}
            - interface: eth2
              dhcp: true
              dhcpOptions: {routeMetric: 0, ipv6: true}
"#,
        expect![[r#"
            machine:
                type: controlplane
            --- LinkConfig/eth0
            --- LinkConfig/eth1
            --- LinkConfig/eth2
            --- DHCPv4Config/eth0
            clientIdentifier: none
            --- DHCPv4Config/eth2
            clientIdentifier: none
            --- DHCPv6Config/eth1
            routeMetric: 2048
            clientIdentifier: duid
            duidRaw: 00:01:ab
            --- DHCPv6Config/eth2
            clientIdentifier: none
            --- Layer2VIPConfig/10.0.0.100
            link: eth0
            --- HCloudVIPConfig/10.0.0.101
            link: eth1
            apiToken: secret
            (links that no document names got addresses by DHCP so far and will not any more: Talos stops that at the first document for a link)
        "#]],
    );
    drops(
        r#"machine:
    network:
        interfaces:
            - interface: eth0
              dhcp: false
              dhcpOptions: {routeMetric: 1}
"#,
        expect![[r#"
            5: machine.network.interfaces[0].dhcp: DHCP is off
            6: machine.network.interfaces[0].dhcpOptions: DHCP is off
        "#]],
    );
    refuses(
        r#"machine:
    network:
        interfaces:
            - interface: eth0
              vip: {ip: 10.0.0.1, equinixMetal: {apiToken: x}}
            - interface: eth1
              vip: {ip: name}
            - interface: eth2
              dhcp: true
              dhcpOptions: {ipv6: true, duidv6: xyz}
"#,
        expect![[r#"
            line 5: machine.network.interfaces[0].vip.equinixMetal: no document announces a shared address to Equinix Metal
            line 7: machine.network.interfaces[1].vip: has no address in `ip`, which the document is named by
            line 10: machine.network.interfaces[2].dhcpOptions.duidv6: is not the hexadecimal text of bytes
        "#]],
    );
}

#[test]
fn vlans_get_the_names_that_talos_gives_them() {
    check(
        r#"machine:
    type: worker
    network:
        interfaces:
            - interface: eth0
              vlans:
                  - vlanId: 5
                    addresses: [10.5.0.1/24]
                    mtu: 1300
                    dhcp: true
            - interface: enx0123456789ab
              vlans:
                  - vlanId: 4000
"#,
        expect![[r#"
            machine:
                type: worker
            --- LinkConfig/eth0
            --- LinkConfig/enx0123456789ab
            --- VLANConfig/eth0.5
            vlanID: 5
            vlanMode: 802.1q
            parent: eth0
            mtu: 1300
            addresses:
                - address: 10.5.0.1/24
            --- VLANConfig/enx0682f75.4000
            vlanID: 4000
            vlanMode: 802.1q
            parent: enx0123456789ab
            --- DHCPv4Config/eth0.5
            clientIdentifier: none
            (links that no document names got addresses by DHCP so far and will not any more: Talos stops that at the first document for a link)
        "#]],
    );
    refuses(
        r#"machine:
    network:
        interfaces:
            - interface: eth0
              vlans: [{vlanId: 5}, {vlanId: 5}, {vlanId: 4095}, {mtu: 1}]
"#,
        expect![[r#"
            line 5: machine.network.interfaces[0].vlans[1]: another entry is the VLAN 5 of eth0 too
            line 5: machine.network.interfaces[0].vlans[2].vlanId: expected a number from 0 to 4094
            line 5: machine.network.interfaces[0].vlans[3]: has no `vlanId`
        "#]],
    );
}

#[test]
fn bonds_bridges_and_others() {
    check(
        r#"machine:
    type: worker
    network:
        interfaces:
            - interface: bond0
              bond:
                  interfaces: [eth2, eth3]
                  mode: 802.3ad
                  lacpRate: fast
                  xmitHashPolicy: layer3+4
                  miimon: 100
                  updelay: 200
                  downdelay: 0
                  resendIgmp: 2
                  tlbDynamicLb: 0
                  useCarrier: no
                  peerNotifyDelay: 100
            - interface: br0
              bridge:
                  interfaces: [eth4]
                  vlan: {vlanFiltering: true}
            - interface: eth5
              bridgePort: {master: br0}
            - interface: br1
              bridge: {interfaces: [eth6], stp: {enabled: false}}
            - interface: wg0
              wireguard:
                  privateKey: OJ34O6J1z4ZZB+t16c+vYrzIrKddxyU3Z2eLhwYzqE8=
                  listenPort: 51820
                  peers:
                      - publicKey: fP+xJZvUA5n1Pi/f5wcPiV6tZ6fHwqcGaXe98NfEgkE=
                        endpoint: 10.0.0.1:51820
                        persistentKeepaliveInterval: 15s
                        allowedIPs: [10.1.0.0/24]
            - interface: dummy0
              dummy: true
"#,
        expect![[r#"
            machine:
                type: worker
            --- LinkConfig/eth5
            --- DummyLinkConfig/dummy0
            --- BondConfig/bond0
            links:
                - eth2
                - eth3
            bondMode: 802.3ad
            lacpRate: fast
            xmitHashPolicy: layer3+4
            miimon: 100
            updelay: 200
            resendIGMP: 2
            useCarrier: false
            peerNotifDelay: 100
            --- BridgeConfig/br0
            links:
                - eth4
                - eth5
            vlan:
                filtering: true
            stp:
                enabled: true
            --- BridgeConfig/br1
            links:
                - eth6
            stp:
                enabled: false
            --- WireguardConfig/wg0
            privateKey: OJ34O6J1z4ZZB+t16c+vYrzIrKddxyU3Z2eLhwYzqE8=
            listenPort: 51820
            peers:
                - publicKey: fP+xJZvUA5n1Pi/f5wcPiV6tZ6fHwqcGaXe98NfEgkE=
                  endpoint: 10.0.0.1:51820
                  persistentKeepaliveInterval: 15s
                  allowedIPs:
                      - 10.1.0.0/24
            (links that no document names got addresses by DHCP so far and will not any more: Talos stops that at the first document for a link)
        "#]],
    );
    refuses(
        r#"machine:
    network:
        interfaces:
            - interface: bond0
              bond: {interfaces: [eth0], mode: active-backup, primary: eth0}
            - interface: bond1
              bond: {}
            - interface: eth1
              bridgePort: {master: br9}
            - interface: wg0
              wireguard:
                  privateKey: OJ34O6J1z4ZZB+t16c+vYrzIrKddxyU3Z2eLhwYzqE8=
                  peers: [{endpoint: "host:1", allowedIPs: [x]}]
            - interface: x0
              dummy: true
              bridge: {}
"#,
        expect![[r#"
            line 5: machine.network.interfaces[0].bond.primary: a BondConfig has no such setting
            line 7: machine.network.interfaces[1].bond: has no `mode`, which a BondConfig needs
            line 7: machine.network.interfaces[1].bond: has no links, of which a BondConfig needs one
            line 9: machine.network.interfaces[2].bridgePort.master: no interface here is the bridge "br9"
            line 13: machine.network.interfaces[3].wireguard.peers[0].endpoint: a WireguardConfig takes an address and a port only
            line 13: machine.network.interfaces[3].wireguard.peers[0].allowedIPs[0]: is no subnet
            line 14: machine.network.interfaces[4]: is to be of 2 kinds at once
        "#]],
    );
}

#[test]
fn a_selected_device_gets_an_alias() {
    check(
        r#"machine:
    type: controlplane
    network:
        interfaces:
            - deviceSelector: {permanentAddr: "00:11:22:33:44:55", driver: virt*, physical: true}
              vip: {ip: 10.0.0.1}
            - interface: bond0
              bond:
                  mode: balance-rr
                  deviceSelectors:
                      - hardwareAddr: "00:11:22:33:44:56"
                      - busPath: 0000:04:00.0
"#,
        expect![[r#"
            machine:
                type: controlplane
            --- LinkAliasConfig/net0
            selector:
                match: mac(link.permanent_addr) == "00:11:22:33:44:55" && glob("virt*", link.driver) && link.type == 1 && link.kind == ""
            --- LinkAliasConfig/net1
            selector:
                match: mac(link.hardware_addr) == "00:11:22:33:44:56"
            --- LinkAliasConfig/net2
            selector:
                match: link.bus_path == "0000:04:00.0"
            --- LinkConfig/net0
            --- BondConfig/bond0
            bondMode: balance-rr
            links:
                - net1
                - net2
            --- Layer2VIPConfig/10.0.0.1
            link: net0
            (links that no document names got addresses by DHCP so far and will not any more: Talos stops that at the first document for a link)
        "#]],
    );
    refuses(
        r#"machine:
    network:
        interfaces:
            - deviceSelector: {driver: virtio_net}
            - deviceSelector: {busPath: "0000:*"}
            - deviceSelector: {hardwareAddr: "00:11:22:33:44:55"}
              vlans: [{vlanId: 5}]
"#,
        expect![[r#"
            line 4: machine.network.interfaces[0].deviceSelector: may find several links, and an alias names one; select by a whole busPath, hardwareAddr or permanentAddr
            line 5: machine.network.interfaces[1].deviceSelector: may find several links, and an alias names one; select by a whole busPath, hardwareAddr or permanentAddr
            line 7: machine.network.interfaces[2].vlans: the VLANs of a selected device would get other names; name the interface first
        "#]],
    );
}

#[test]
fn documents_are_found_by_names_that_read_as_numbers() {
    refuses(
        "machine:
    network:
        interfaces:
            - interface: 0x5
              mtu: 1400
---
apiVersion: v1alpha1
kind: LinkConfig
name: 0x5
mtu: 1500
",
        expect![[r#"
            line 5: machine.network.interfaces[0].mtu: `mtu` of LinkConfig/0x5 at line 10 says otherwise
        "#]],
    );
}
