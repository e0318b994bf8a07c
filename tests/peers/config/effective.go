//go:build talos1.14

package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	core "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
)

// effective tells what a configuration means, as the accessors of the library answer from either form: the main
// document or the documents that replace parts of it. What the two forms call differently is brought to one name here.
func effective(asked *request) (*answer, error) {
	provider, err := configloader.NewFromBytes([]byte(asked.Config))
	if err != nil {
		return nil, err
	}

	text, err := json.Marshal(clean(meaning(provider)))
	if err != nil {
		return nil, err
	}

	return &answer{Text: string(text)}, nil
}

type object = map[string]any

func meaning(provider config.Provider) object {
	machine, cluster := provider.Machine(), provider.Cluster()
	found := object{}

	dump := func(names ...string) {
		for _, name := range names {
			method := reflect.ValueOf(&provider).Elem().MethodByName(name)
			found[name] = told(method.Call(nil)[0])
		}
	}

	dump("NetworkStaticHostConfig", "NetworkResolverConfig", "NetworkTimeSyncConfig", "NetworkKubeSpanConfig",
		"DiscoveryServiceConfigs", "DiscoveryIdentityConfig", "K8sAPIServerCAConfig", "K8sClusterConfig",
		"K8sNetworkConfig", "K8sNodeConfig", "K8sKubeletConfig", "K8sCredentialProviderConfig", "K8sStaticPodConfigs",
		"K8sInlineManifestConfigs", "K8sExternalManifestConfigs", "K8sKubePrismConfig", "RegistryMirrorConfigs",
		"RegistryAuthConfigs", "RegistryTLSConfigs", "ImageCacheConfig", "CRIBaseRuntimeSpecConfig",
		"CRICustomizationConfigs", "EtcFileConfigs", "UdevRulesConfig", "SysctlConfig", "SysfsConfig",
		"KernelModuleConfigs", "Debug")

	// These documents have names, which the main document has none for.
	for _, list := range []string{"DiscoveryServiceConfigs", "K8sExternalManifestConfigs", "CRICustomizationConfigs"} {
		entries, _ := found[list].([]any)
		for _, entry := range entries {
			delete(entry.(object), "Name")
		}
	}

	hosts := object{}

	for _, host := range provider.NetworkStaticHostConfig() {
		known, _ := hosts[host.IP()].([]any)
		for _, alias := range host.Aliases() {
			known = append(known, alias)
		}

		hosts[host.IP()] = known
	}

	found["NetworkStaticHostConfig"] = hosts

	if name := provider.NetworkHostnameConfig(); name != nil {
		found["hostname"] = name.Hostname()
		if name.Hostname() == "" {
			found["autoHostname"] = name.AutoHostname().String()
		}
	}

	if dns := provider.NetworkHostDNSConfig(); dns != nil && dns.HostDNSEnabled() {
		found["hostDNS"] = told(reflect.ValueOf(&dns).Elem())
	}

	if sync := provider.NetworkTimeSyncConfig(); sync != nil && !sync.Disabled() && len(sync.Servers()) == 0 && sync.BootTimeout() == 0 {
		delete(found, "NetworkTimeSyncConfig")
	}

	// Switched off is what nothing means.
	for kind, field := range map[string]string{"ImageCacheConfig": "LocalEnabled", "NetworkKubeSpanConfig": "Enabled"} {
		if entry, ok := found[kind].(object); ok && entry[field] == false {
			delete(found, kind)
		}
	}

	if machine != nil {
		found["type"] = machine.Type().String()
		security, features, logging := machine.Security(), machine.Features(), machine.Logging()
		found["security"] = told(reflect.ValueOf(&security).Elem())
		found["features"] = told(reflect.ValueOf(&features).Elem())
		found["logging"] = told(reflect.ValueOf(&logging).Elem())
		found["seccomp"] = told(reflect.ValueOf(machine.SeccompProfiles()))
		found["disks"] = told(reflect.ValueOf(machine.Disks()))
		found["install"] = installation(provider)
		found["encryption"] = encryption(provider)
		found["environment"] = environment(provider)
		found["files"] = files(machine)
		network(provider, found)
	}

	if cluster != nil {
		found["token"] = cluster.Token().ID() + "." + cluster.Token().Secret()
		etcd, external, admin := cluster.Etcd(), cluster.ExternalCloudProvider(), cluster.AdminKubeconfig()
		found["etcd"] = told(reflect.ValueOf(&etcd).Elem())
		found["external"] = told(reflect.ValueOf(&external).Elem())
		found["admin"] = told(reflect.ValueOf(&admin).Elem())
		found["discoveryByKubernetes"] = cluster.Discovery().Enabled() && cluster.Discovery().Registries().Kubernetes().Enabled()
	}

	if machine != nil && machine.Type().IsControlPlane() {
		dump("K8sAggregatorCAConfig", "K8sAdmissionControlPluginConfigs", "K8sAuditPolicyConfig",
			"K8sControllerManagerConfig", "K8sSchedulerConfig", "K8sProxyConfig", "K8sFlannelCNIConfig",
			"K8sCoreDNSConfig", "K8sServiceAccountConfig", "K8sTalosAPIAccessConfig", "K8sAPIServerConfig",
			"K8sAuthorizerConfigs")
		controlPlane(provider, found)
	}

	return found
}

func controlPlane(provider config.Provider, found object) {
	server := found["K8sAPIServerConfig"].(object)
	arguments, _ := server["ExtraArgs"].(object)
	anonymous := strings.Contains(fmt.Sprint(arguments["anonymous-auth"]), "true")
	authorizers, _ := found["K8sAuthorizerConfigs"].([]any)

	has := func(kind string) bool {
		return slices.ContainsFunc(authorizers, func(entry any) bool { return entry.(object)["Type"] == kind })
	}

	if server["InjectDefaultAuthorizers"] == true {
		if !has("Node") {
			authorizers = slices.Insert(authorizers, 0, any(object{"Type": "Node", "Name": "node"}))
		}

		if !has("RBAC") {
			authorizers = slices.Insert(authorizers, 1, any(object{"Type": "RBAC", "Name": "rbac"}))
		}

		delete(arguments, "authorization-mode")
	}

	found["K8sAuthorizerConfigs"] = authorizers

	if server["UseAuthenticationConfig"] == true {
		if authentication := provider.K8sAuthenticationConfig(); authentication != nil {
			found["authentication"] = told(reflect.ValueOf(authentication.Configuration()))
		}
	} else {
		delete(arguments, "anonymous-auth")

		authentication := object{"anonymous": object{"enabled": anonymous}}
		if authenticator := openID(arguments); authenticator != nil {
			authentication["jwt"] = []any{authenticator}
		}

		found["authentication"] = authentication
	}

	delete(server, "InjectDefaultAuthorizers")
	delete(server, "UseAuthenticationConfig")

	// The document always brings the authorities that the host trusts.
	volumes, _ := server["ExtraVolumes"].([]any)
	server["ExtraVolumes"] = slices.DeleteFunc(volumes, func(entry any) bool { return entry.(object)["Name"] == "ca-roots" })

	for _, kind := range []string{"K8sControllerManagerConfig", "K8sSchedulerConfig", "K8sProxyConfig", "K8sCoreDNSConfig"} {
		if entry := found[kind].(object); entry["Enabled"] == false {
			found[kind] = object{"Enabled": false}
		}
	}

	proxyFile(found["K8sProxyConfig"].(object))

	if encryption := provider.K8sEtcdEncryptionConfig(); encryption != nil {
		found["etcdEncryption"] = told(reflect.ValueOf(encryption.EtcdEncryptionConfig()))
	} else {
		found["etcdEncryption"] = oldEncryption(provider.Cluster())
	}
}

// openID takes the arguments for OpenID Connect away and tells them as the authenticator that the API server makes of them.
func openID(arguments object) any {
	last := func(name string) string {
		values := texts(arguments["oidc-"+name])
		if len(values) == 0 {
			return ""
		}

		return values[len(values)-1]
	}

	issuer := last("issuer-url")
	if issuer == "" {
		return nil
	}

	user, prefix := last("username-claim"), last("username-prefix")
	if user == "" {
		user = "sub"
	}

	switch {
	case prefix == "-":
		prefix = ""
	case prefix == "" && user != "email":
		prefix = issuer + "#"
	}

	mappings := object{"username": object{"claim": user, "prefix": prefix}}
	if claim := last("groups-claim"); claim != "" {
		mappings["groups"] = object{"claim": claim, "prefix": last("groups-prefix")}
	}

	var rules []any

	for _, rule := range texts(arguments["oidc-required-claim"]) {
		claim, value, _ := strings.Cut(rule, "=")
		rules = append(rules, object{"claim": claim, "requiredValue": value})
	}

	found := object{
		"issuer":        object{"url": issuer, "audiences": []any{last("client-id")}},
		"claimMappings": mappings, "claimValidationRules": rules,
	}

	for name := range arguments {
		if strings.HasPrefix(name, "oidc-") {
			delete(arguments, name)
		}
	}

	return found
}

// oldEncryption is the configuration that Talos makes of the secrets of the main document.
func oldEncryption(cluster core.ClusterConfig) any {
	var providers []any

	if secret := cluster.SecretboxEncryptionSecret(); secret != "" {
		providers = append(providers, object{"secretbox": object{"keys": []any{object{"name": "key2", "secret": secret}}}})
	}

	if secret := cluster.AESCBCEncryptionSecret(); secret != "" {
		providers = append(providers, object{"aescbc": object{"keys": []any{object{"name": "key1", "secret": secret}}}})
	}

	if len(providers) == 0 {
		return nil
	}

	providers = append(providers, object{"identity": object{}})

	return object{"resources": []any{object{"resources": []any{"secrets"}, "providers": providers}}}
}

// proxyFile tells arguments of kube-proxy as the fields of its file that they set.
func proxyFile(proxy object) {
	delete(proxy, "UseConfigFile")

	arguments, _ := proxy["ExtraArgs"].(object)
	file, _ := proxy["Config"].(object)

	if file == nil {
		file = object{}
	}

	virtual, _ := file["ipvs"].(object)
	if virtual == nil {
		virtual = object{}
	}

	for name, values := range arguments {
		value := any(strings.Join(texts(values), ","))

		switch name {
		case "metrics-bind-address":
			file["metricsBindAddress"] = value
		case "bind-address":
			file["bindAddress"] = value
		case "healthz-bind-address":
			file["healthzBindAddress"] = value
		case "nodeport-addresses":
			file["nodePortAddresses"] = strings.Split(value.(string), ",")
		case "ipvs-strict-arp":
			virtual["strictARP"] = value == "true"
		case "ipvs-scheduler":
			virtual["scheduler"] = value
		default:
			continue
		}

		delete(arguments, name)
	}

	file["ipvs"] = virtual
	proxy["Config"] = file
}

func texts(values any) []string {
	var found []string

	list, _ := values.([]any)
	for _, value := range list {
		found = append(found, fmt.Sprint(value))
	}

	return found
}

func installation(provider config.Provider) any {
	if document := provider.UnattendedInstallConfig(); document != nil {
		selector := document.VolumeSelector()

		return object{"image": document.InstallerImage(), "match": selector.String(), "wipe": document.VolumeWipe()}
	}

	old := provider.Machine().Install()
	if old.Image() == "" && old.Disk() == "" {
		if expression, err := old.DiskMatchExpression(); err != nil || expression == nil {
			return nil
		}
	}

	match := fmt.Sprintf("disk.dev_path == %q", old.Disk())
	if expression, err := old.DiskMatchExpression(); err == nil && expression != nil {
		// The library breaks the lines of long expressions that it makes itself.
		match = strings.Join(strings.Fields(expression.String()), " ")
	}

	return object{"image": old.Image(), "match": match, "wipe": old.Zero()}
}

func encryption(provider config.Provider) any {
	found := object{}

	for _, name := range []string{"STATE", "EPHEMERAL"} {
		var chosen core.EncryptionConfig

		if old := provider.Machine().SystemDiskEncryption().Get(name); old != nil {
			chosen = old
		} else if volume, ok := provider.Volumes().ByName(name); ok {
			chosen = volume.Encryption()
		}

		if chosen != nil && len(chosen.Keys()) > 0 {
			found[name] = told(reflect.ValueOf(&chosen).Elem())
		}
	}

	return found
}

func environment(provider config.Provider) any {
	found := object{}

	for name, value := range provider.Machine().Env() {
		found[name] = value
	}

	for name, value := range provider.Environment().Variables() {
		found[name] = value
	}

	return found
}

func files(machine core.MachineConfig) any {
	list, err := machine.Files()
	if err != nil {
		return err.Error()
	}

	list = slices.DeleteFunc(list, func(file core.File) bool {
		return file.Path() == "/etc/cri/conf.d/20-customization.part"
	})

	return told(reflect.ValueOf(list))
}

// told turns a value into one of JSON; of an interface it tells what each of its methods without arguments answers.
func told(value reflect.Value) any {
	if !value.IsValid() {
		return nil
	}

	switch value.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice:
		if value.IsNil() {
			return nil
		}
	}

	if plain, ok := simple(value); ok {
		return plain
	}

	switch value.Kind() {
	case reflect.Interface:
		if value.NumMethod() == 0 {
			return told(value.Elem())
		}

		found := object{}

		for i := range value.NumMethod() {
			method := value.Type().Method(i)
			if method.Type.NumIn() == 0 && method.Type.NumOut() == 1 {
				found[method.Name] = told(value.Method(i).Call(nil)[0])
			}
		}

		return found
	case reflect.Pointer:
		return told(value.Elem())
	case reflect.Struct:
		found := object{}

		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				found[value.Type().Field(i).Name] = told(value.Field(i))
			}
		}

		return found
	case reflect.Map:
		found := object{}
		for _, key := range value.MapKeys() {
			found[fmt.Sprint(key)] = told(value.MapIndex(key))
		}

		return found
	case reflect.Slice, reflect.Array:
		found := make([]any, 0, value.Len())
		for i := range value.Len() {
			found = append(found, told(value.Index(i)))
		}

		return found
	default:
		return value.Interface()
	}
}

// simple tells what has a text of its own.
func simple(value reflect.Value) (any, bool) {
	if present := value.MethodByName("IsPresent"); present.IsValid() {
		if !present.Call(nil)[0].Bool() {
			return nil, true
		}

		return told(value.MethodByName("ValueOrZero").Call(nil)[0]), true
	}

	switch value := value.Interface().(type) {
	case []byte:
		return string(value), true
	case netip.Prefix:
		return value.String(), true
	}

	if value.Kind() != reflect.Interface && value.Kind() != reflect.Slice && value.Kind() != reflect.Map {
		if text, ok := value.Interface().(fmt.Stringer); ok {
			return text.String(), true
		}
	}

	return nil, false
}

// clean leaves out what is empty: one form says nothing where the other one says that there is nothing.
func clean(value any) any {
	switch value := value.(type) {
	case object:
		found := object{}

		for key, below := range value {
			if below = clean(below); below != nil {
				found[key] = below
			}
		}

		if len(found) == 0 {
			return nil
		}

		return found
	case []any:
		found := make([]any, 0, len(value))
		for _, below := range value {
			if below = clean(below); below != nil {
				found = append(found, below)
			}
		}

		if len(found) == 0 {
			return nil
		}

		return found
	case string:
		if value == "" {
			return nil
		}
	}

	return value
}
