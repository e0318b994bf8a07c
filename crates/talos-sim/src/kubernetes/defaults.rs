//! What the Kubernetes API fills into objects that leave it out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Priority of pods of the class `system-cluster-critical`.
const CLUSTER_CRITICAL: u64 = 2_000_000_000;

/// Completes an object before it is stored.
pub(crate) fn complete(object: &mut Value) {
    match object["kind"].as_str().unwrap_or_default() {
        "DaemonSet" => {
            let spec = &mut object["spec"];
            set(spec, "revisionHistoryLimit", json!(10));
            let strategy = inside(spec, "updateStrategy");
            set(strategy, "type", json!("RollingUpdate"));
            if strategy["type"] == "RollingUpdate" {
                let rolling = inside(strategy, "rollingUpdate");
                set(rolling, "maxSurge", json!(0));
                set(rolling, "maxUnavailable", json!(1));
            }
            template(spec);
        }
        "Deployment" => {
            let spec = &mut object["spec"];
            set(spec, "progressDeadlineSeconds", json!(600));
            set(spec, "replicas", json!(1));
            set(spec, "revisionHistoryLimit", json!(10));
            let strategy = inside(spec, "strategy");
            set(strategy, "type", json!("RollingUpdate"));
            if strategy["type"] == "RollingUpdate" {
                let rolling = inside(strategy, "rollingUpdate");
                set(rolling, "maxSurge", json!("25%"));
                set(rolling, "maxUnavailable", json!("25%"));
            }
            template(spec);
        }
        "ReplicaSet" | "StatefulSet" => template(&mut object["spec"]),
        "Pod" => pod(&mut object["spec"]),
        "Service" => service(object),
        "Namespace" => {
            let name = object["metadata"]["name"].clone();
            let labels = inside(&mut object["metadata"], "labels");
            set(labels, "kubernetes.io/metadata.name", name);
            set(inside(object, "spec"), "finalizers", json!(["kubernetes"]));
            set(inside(object, "status"), "phase", json!("Active"));
        }
        "Secret" => {
            set(object, "type", json!("Opaque"));
            encode_string_data(object);
        }
        "ClusterRoleBinding" | "RoleBinding" => {
            set(
                inside(object, "roleRef"),
                "apiGroup",
                json!("rbac.authorization.k8s.io"),
            );
            for subject in items(object, "subjects") {
                if subject["kind"] == "User" || subject["kind"] == "Group" {
                    set(subject, "apiGroup", json!("rbac.authorization.k8s.io"));
                }
            }
        }
        "CustomResourceDefinition" => {
            let condition = |name: &str, reason: &str| json!({ "type": name, "status": "True", "reason": reason });
            let conditions = json!([
                condition("NamesAccepted", "NoConflicts"),
                condition("Established", "InitialNamesAccepted"),
            ]);
            set(inside(object, "status"), "conditions", conditions);
        }
        _ => {}
    }
}

/// Completes the template of a workload; a template shows defaults that a manifest may leave out.
fn template(spec: &mut Value) {
    if spec["template"]["spec"].is_object() {
        pod_spec(&mut spec["template"]["spec"]);
    }
}

/// Completes the specification of a pod, with what admission adds to it.
fn pod(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    pod_spec(spec);
    set(spec, "enableServiceLinks", json!(true));
    set(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
    let priority = match spec["priorityClassName"].as_str() {
        Some("system-cluster-critical") => CLUSTER_CRITICAL,
        Some("system-node-critical") => CLUSTER_CRITICAL + 1000,
        _ => 0,
    };
    set(spec, "priority", json!(priority));
    let present = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let covered = present.iter().any(|toleration| {
            toleration["key"] == key
                || (toleration["key"].is_null() && toleration["effect"] == "NoExecute")
        });
        if !covered {
            let toleration = json!({
                "effect": "NoExecute",
                "key": key,
                "operator": "Exists",
                "tolerationSeconds": 300,
            });
            match spec["tolerations"].as_array_mut() {
                Some(tolerations) => tolerations.push(toleration),
                None => spec["tolerations"] = json!([toleration]),
            }
        }
    }
}

fn pod_spec(spec: &mut Value) {
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "schedulerName", json!("default-scheduler"));
    set(spec, "securityContext", json!({}));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        set(spec, "serviceAccount", account);
    }
    for list in ["initContainers", "containers"] {
        for item in items(spec, list) {
            container(item);
        }
    }
    for volume in items(spec, "volumes") {
        if volume["hostPath"].is_object() {
            set(&mut volume["hostPath"], "type", json!(""));
        }
        for source in ["configMap", "secret", "projected", "downwardAPI"] {
            if volume[source].is_object() {
                set(&mut volume[source], "defaultMode", json!(420));
            }
        }
    }
}

fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let tag = image
        .rsplit('/')
        .next()
        .and_then(|name| name.split_once(':'));
    let policy = match tag {
        Some((_, tag)) if tag != "latest" => "IfNotPresent",
        _ => "Always",
    };
    set(container, "imagePullPolicy", json!(policy));
    set(container, "resources", json!({}));
    set(
        container,
        "terminationMessagePath",
        json!("/dev/termination-log"),
    );
    set(container, "terminationMessagePolicy", json!("File"));
    for port in items(container, "ports") {
        set(port, "protocol", json!("TCP"));
    }
    for variable in items(container, "env") {
        if variable["valueFrom"]["fieldRef"].is_object() {
            set(
                &mut variable["valueFrom"]["fieldRef"],
                "apiVersion",
                json!("v1"),
            );
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if !container[probe].is_object() {
            continue;
        }
        let probe = &mut container[probe];
        set(probe, "failureThreshold", json!(3));
        set(probe, "periodSeconds", json!(10));
        set(probe, "successThreshold", json!(1));
        set(probe, "timeoutSeconds", json!(1));
        if probe["httpGet"].is_object() {
            set(&mut probe["httpGet"], "path", json!("/"));
            set(&mut probe["httpGet"], "scheme", json!("HTTP"));
        }
    }
}

fn service(object: &mut Value) {
    let name = object["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let spec = inside(object, "spec");
    set(spec, "internalTrafficPolicy", json!("Cluster"));
    set(spec, "ipFamilies", json!(["IPv4"]));
    set(spec, "ipFamilyPolicy", json!("SingleStack"));
    set(spec, "sessionAffinity", json!("None"));
    set(spec, "type", json!("ClusterIP"));
    set(spec, "clusterIP", json!(cluster_ip(&name)));
    let address = spec["clusterIP"].clone();
    set(spec, "clusterIPs", json!([address]));
    for port in items(spec, "ports") {
        set(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        set(port, "targetPort", number);
    }
    set(inside(object, "status"), "loadBalancer", json!({}));
}

/// Returns an address of the usual service network, always the same for a name.
fn cluster_ip(name: &str) -> String {
    let sum = name.bytes().fold(0_u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    let [_, _, high, low] = sum.to_be_bytes();
    format!("10.96.{high}.{}", low.max(20))
}

/// Moves `stringData` to `data`, which alone is stored.
fn encode_string_data(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let Some(Value::Object(texts)) = fields.shift_remove("stringData") else {
        return;
    };
    let data = inside(object, "data");
    for (name, text) in texts {
        data[name] = json!(STANDARD.encode(text.as_str().unwrap_or_default()));
    }
}

/// Sets a field that is absent.
fn set(object: &mut Value, field: &str, value: Value) {
    if object.get(field).is_none_or(Value::is_null) {
        object[field] = value;
    }
}

/// Returns the object in a field, which is created if absent.
fn inside<'a>(object: &'a mut Value, field: &str) -> &'a mut Value {
    set(object, field, json!({}));
    &mut object[field]
}

fn items<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object
        .get_mut(field)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}
