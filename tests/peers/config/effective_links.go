//go:build talos1.14

package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	core "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
)

// network tells the links, the DHCP on them and the shared addresses, of the main document and of documents alike.
func network(provider config.Provider, found object) {
	links, dhcp, shared, ports := object{}, object{}, object{}, map[string][]any{}
	selected := 0

	// What an alias selects has no name of its own in the main document: it goes by its position in both forms.
	names := map[string]string{}
	for number, alias := range provider.NetworkLinkAliasConfigs() {
		names[alias.Name()] = fmt.Sprintf("selected %d", number)
	}

	called := func(name string) string {
		if known, ok := names[name]; ok {
			return known
		}

		return name
	}

	for _, device := range provider.Machine().Network().Devices() {
		name := device.Interface()
		if name == "" {
			name = fmt.Sprintf("selected %d", selected)
			selected++
		}

		if device.Ignore() {
			links[name] = "ignored"

			continue
		}

		if port := device.BridgePort(); port != nil {
			ports[port.Master()] = append(ports[port.Master()], name)
		}

		link := deviceLink(device)
		links[name] = link

		if bond := device.Bond(); bond != nil && len(bond.Selectors()) > 0 {
			members, _ := link["links"].([]any)
			for range bond.Selectors() {
				members = append(members, fmt.Sprintf("selected %d", selected))
				selected++
			}

			link["links"] = members
		}

		oldDHCP(name, device.DHCP(), device.DHCPOptions(), dhcp)
		oldShared(name, device.VIPConfig(), shared)

		for _, vlan := range device.Vlans() {
			vlanName := nethelpers.VLANLinkName(name, vlan.ID())
			link := common(vlan.MTU(), vlan.Addresses(), vlan.Routes())
			link["kind"], link["parent"], link["id"], link["mode"] = "vlan", name, vlan.ID(), vlan.Mode().String()
			links[vlanName] = link
			oldDHCP(vlanName, vlan.DHCP(), vlan.DHCPOptions(), dhcp)
			oldShared(vlanName, vlan.VIPConfig(), shared)
		}
	}

	for bridge, names := range ports {
		link, ok := links[bridge].(object)
		if !ok {
			continue
		}

		members, _ := link["links"].([]any)
		link["links"] = append(members, names...)
	}

	for _, document := range provider.NetworkCommonLinkConfigs() {
		link := documentLink(document)
		links[called(document.Name())] = link

		if members, ok := link["links"].([]any); ok {
			for i, member := range members {
				members[i] = called(fmt.Sprint(member))
			}
		}
	}

	for _, document := range provider.NetworkDHCPv4Configs() {
		dhcp["4 "+called(document.Name())] = object{
			"metric": document.RouteMetric().ValueOr(1024), "identifier": document.ClientIdentifier().String(),
		}
	}

	for _, document := range provider.NetworkDHCPv6Configs() {
		dhcp["6 "+called(document.Name())] = object{
			"metric": document.RouteMetric().ValueOr(1024), "identifier": document.ClientIdentifier().String(),
			"duid": strings.ReplaceAll(fmt.Sprint(document.DUIDRaw().ValueOrZero()), ":", ""),
		}
	}

	for _, document := range provider.NetworkVirtualIPConfigs() {
		entry := object{"link": called(document.Link())}
		if hetzner, ok := document.(core.NetworkHCloudVIPConfig); ok {
			entry["token"] = hetzner.HCloudAPIToken()
		}

		shared[document.VIP().String()] = entry
	}

	found["links"], found["dhcp"], found["shared"] = links, dhcp, shared
}

func common(mtu uint32, addresses []string, routes []core.Route) object {
	link := object{}
	if mtu != 0 {
		link["mtu"] = mtu
	}

	var list []any

	for _, address := range addresses {
		if !strings.Contains(address, "/") {
			bits := "/32"
			if strings.Contains(address, ":") {
				bits = "/128"
			}

			address += bits
		}

		list = append(list, address)
	}

	link["addresses"] = list
	list = nil

	for _, route := range routes {
		entry := object{"to": route.Network(), "via": route.Gateway(), "from": route.Source()}
		if route.Network() == "0.0.0.0/0" || route.Network() == "::/0" {
			delete(entry, "to")
		}

		if route.Metric() != 0 {
			entry["metric"] = route.Metric()
		}

		if route.MTU() != 0 {
			entry["mtu"] = route.MTU()
		}

		list = append(list, entry)
	}

	link["routes"] = list

	return link
}

func deviceLink(device core.Device) object {
	link := common(uint32(device.MTU()), device.Addresses(), device.Routes())
	link["kind"] = "link"

	if device.Dummy() {
		link["kind"] = "dummy"
	}

	if bridge := device.Bridge(); bridge != nil {
		link["kind"], link["links"] = "bridge", told(reflect.ValueOf(bridge.Interfaces()))
		link["stp"] = bridge.STP() != nil && bridge.STP().Enabled()
		link["filtering"] = bridge.VLAN() != nil && bridge.VLAN().FilteringEnabled()
	}

	if bond := device.Bond(); bond != nil {
		link["kind"], link["links"] = "bond", told(reflect.ValueOf(bond.Interfaces()))
		settings := object{"Mode": bond.Mode(), "XmitHashPolicy": bond.HashPolicy(), "FailOverMAC": bond.FailOverMac()}

		for _, name := range []string{
			"LACPRate", "ARPValidate", "ARPAllTargets", "PrimaryReselect", "ADSelect", "MIIMon", "UpDelay", "DownDelay",
			"ARPInterval", "ResendIGMP", "MinLinks", "LPInterval", "PacketsPerSlave", "NumPeerNotif", "TLBDynamicLB",
			"AllSlavesActive", "ADActorSysPrio", "ADUserPortKey", "PeerNotifyDelay",
		} {
			if value := reflect.ValueOf(bond).MethodByName(name).Call(nil)[0]; !value.IsZero() {
				settings[name] = value.Interface()
			}
		}

		settings["UseCarrier"] = bond.UseCarrier()
		link["bond"] = settings
	}

	if guard := device.WireguardConfig(); guard != nil {
		link["kind"] = "wireguard"

		var peers []any
		for _, peer := range guard.Peers() {
			peers = append(peers, object{
				"key": peer.PublicKey(), "endpoint": peer.Endpoint(), "alive": peer.PersistentKeepaliveInterval().String(),
				"allowed": told(reflect.ValueOf(peer.AllowedIPs())),
			})
		}

		link["wireguard"] = object{
			"key": guard.PrivateKey(), "port": guard.ListenPort(), "mark": guard.FirewallMark(), "peers": peers,
		}
	}

	return link
}

func documentLink(document core.NetworkCommonLinkConfig) object {
	link := object{"mtu": told(reflect.ValueOf(document.MTU())), "kind": "link"}

	if up, ok := document.Up().Get(); ok && !up {
		link["up"] = false
	}

	var list []any
	for _, address := range document.Addresses() {
		list = append(list, address.Address().String())
	}

	link["addresses"] = list
	list = nil

	for _, route := range document.Routes() {
		list = append(list, object{
			"to": told(reflect.ValueOf(route.Destination())), "via": told(reflect.ValueOf(route.Gateway())),
			"from": told(reflect.ValueOf(route.Source())), "metric": told(reflect.ValueOf(route.Metric())),
			"mtu": told(reflect.ValueOf(route.MTU())),
		})
	}

	link["routes"] = list

	switch kind := document.(type) {
	case core.NetworkDummyLinkConfig:
		link["kind"] = "dummy"
	case core.NetworkVLANConfig:
		link["kind"], link["parent"], link["id"] = "vlan", kind.ParentLink(), kind.VLANID()
		link["mode"] = kind.VLANMode().ValueOr(nethelpers.VLANProtocol8021Q).String()
	case core.NetworkBridgeConfig:
		link["kind"], link["links"] = "bridge", told(reflect.ValueOf(kind.Links()))
		link["stp"], link["filtering"] = kind.STP().Enabled().ValueOrZero(), kind.VLAN().FilteringEnabled().ValueOrZero()
	case core.NetworkBondConfig:
		link["kind"], link["links"] = "bond", told(reflect.ValueOf(kind.Links()))
		settings, _ := told(reflect.ValueOf(&kind).Elem()).(object)

		for name := range settings {
			switch name {
			case "Links", "MTU", "Addresses", "Routes", "Name", "Kind", "APIVersion", "Up", "Multicast", "Clone":
				delete(settings, name)
			}
		}

		settings["UseCarrier"] = kind.UseCarrier().ValueOr(true)
		link["bond"] = settings
	case core.NetworkWireguardConfig:
		link["kind"] = "wireguard"

		var peers []any
		for _, peer := range kind.Peers() {
			peers = append(peers, object{
				"key": peer.PublicKey(), "endpoint": peer.Endpoint().ValueOrZero(),
				"alive": peer.PersistentKeepalive().ValueOrZero().String(), "allowed": told(reflect.ValueOf(peer.AllowedIPs())),
			})
		}

		link["wireguard"] = object{
			"key": kind.PrivateKey(), "port": kind.ListenPort().ValueOrZero(), "mark": kind.FirewallMark().ValueOrZero(),
			"peers": peers,
		}
	}

	return link
}

// oldDHCP tells that the main document makes Talos ask without a client identifier.
func oldDHCP(name string, on bool, options core.DHCPOptions, found object) {
	if !on {
		return
	}

	metric := options.RouteMetric()
	if metric == 0 {
		metric = 1024
	}

	if options.IPv4() {
		found["4 "+name] = object{"metric": metric, "identifier": "none"}
	}

	if options.IPv6() {
		identifier := "none"
		if options.DUIDv6() != "" {
			identifier = "duid"
		}

		found["6 "+name] = object{
			"metric": metric, "identifier": identifier, "duid": strings.ToLower(strings.ReplaceAll(options.DUIDv6(), ":", "")),
		}
	}
}

func oldShared(name string, address core.VIPConfig, found object) {
	if address == nil {
		return
	}

	entry := object{"link": name}
	if address.HCloud() != nil {
		entry["token"] = address.HCloud().APIToken()
	}

	found[address.IP()] = entry
}
