//! The documents about Kubernetes that Talos has since 1.14.

use serde_json::{Value, json};

use super::documents::document;
use super::main_document::{
    EXCLUDE_LABEL, Fields, KUBE_PRISM_PORT, KUBELET, audit_policy, image, network, pod_security,
};
use super::secrets::KeyPair;
use super::{Params, Secrets};
use crate::machine::MachineType;

/// What marks control planes for Kubernetes.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// Makes the documents about Kubernetes.
pub(super) fn documents(kind: MachineType, params: &Params, secrets: &Secrets) -> Vec<Value> {
    let mut made = everywhere(kind, params, secrets);
    if kind == MachineType::ControlPlane {
        made.extend(control_plane(params, secrets));
    }
    made
}

fn everywhere(kind: MachineType, params: &Params, secrets: &Secrets) -> Vec<Value> {
    let is_control_plane = kind == MachineType::ControlPlane;
    let mut node = Fields::default();
    node.put("nodeIP", json!({}));
    node.put_if(
        is_control_plane,
        "labels",
        || json!({CONTROL_PLANE: "", EXCLUDE_LABEL: ""}),
    );
    node.put_if(
        is_control_plane,
        "taints",
        || json!({CONTROL_PLANE: "NoSchedule"}),
    );
    let mut kubelet = Fields::default();
    kubelet.put_some("image", params.kubernetes_image(KUBELET));
    kubelet.put("config", json!({}));
    kubelet.put("defaultRuntimeSeccompProfileEnabled", true);
    let authority = match kind {
        MachineType::ControlPlane => issuing(&secrets.kubernetes),
        MachineType::Worker => json!({"acceptedCAs": [secrets.kubernetes.crt]}),
    };
    let cluster = json!({
        "clusterName": params.cluster_name,
        "endpoint": params.endpoint.as_str(),
    });
    vec![
        document("KubeClusterConfig", &cluster),
        document("KubeNodeConfig", &node.into()),
        document("KubeletConfig", &kubelet.into()),
        document("KubeNetworkConfig", &network(params)),
        document("KubeAPIServerCAConfig", &authority),
        document("KubePrismConfig", &json!({"port": KUBE_PRISM_PORT})),
    ]
}

fn control_plane(params: &Params, secrets: &Secrets) -> Vec<Value> {
    let (provider, key, secret) = secrets.encryption.provider();
    let encryption = json!({
        "resources": [{
            "providers": [{provider: {"keys": [{"name": key, "secret": secret}]}}],
            "resources": ["secrets"],
        }],
    });
    let anonymous = ["/livez", "/readyz", "/healthz"].map(|path| json!({"path": path}));
    let authentication = json!({
        "anonymous": {"conditions": anonymous, "enabled": true},
        "jwt": [],
    });
    let service_account = json!({
        "issuer": {
            "privateKey": secrets.service_account,
            "issuerURL": params.endpoint.as_str(),
        },
    });
    let mut api_server = image(params, "kube-apiserver");
    api_server.put_if(!params.additional_sans.is_empty(), "certExtraSANs", || {
        params.additional_sans.as_slice().into()
    });
    let with_config = |name| {
        let mut fields = image(params, name);
        fields.put("config", json!({}));
        fields.into()
    };
    let flannel = json!({"backendType": "vxlan", "backendPort": 4789});
    let admission = json!({"name": "PodSecurity", "configuration": pod_security()});
    let configuration = |value: Value| json!({ "configuration": value });
    vec![
        document("KubeAggregatorCAConfig", &issuing(&secrets.aggregator)),
        document("KubeAdmissionControlConfig", &admission),
        document("KubeAuditPolicyConfig", &configuration(audit_policy())),
        document("KubeAuthenticationConfig", &configuration(authentication)),
        document(
            "KubeAuthorizerConfig",
            &json!({"name": "node", "type": "Node"}),
        ),
        document(
            "KubeAuthorizerConfig",
            &json!({"name": "rbac", "type": "RBAC"}),
        ),
        document("KubeEtcdEncryptionConfig", &json!({ "config": encryption })),
        document("KubeServiceAccountConfig", &service_account),
        document("KubeAPIServerConfig", &api_server.into()),
        document(
            "KubeControllerManagerConfig",
            &image(params, "kube-controller-manager").into(),
        ),
        document("KubeSchedulerConfig", &with_config("kube-scheduler")),
        document("KubeProxyConfig", &with_config("kube-proxy")),
        document("KubeFlannelCNIConfig", &flannel),
        document("KubeCoreDNSConfig", &json!({"enabled": true})),
    ]
}

fn issuing(pair: &KeyPair) -> Value {
    json!({"issuingCA": {"cert": pair.crt, "key": pair.key}})
}
