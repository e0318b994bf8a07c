//! Parts of the machine itself: environment, kernel modules and features.

use serde_json::Value;

use super::work::Work;

pub(super) fn all(work: &mut Work<'_>) {
    if work.target.has(13) {
        environment(work);
    }
    if work.target.has(14) {
        modules(work);
        kube_prism(work);
        talos_access(work);
        pods(work);
    }
}

fn environment(work: &mut Work<'_>) {
    let Some(field) = work.at(&["machine", "env"]) else {
        return;
    };
    let before = work.refusals.len();
    for (name, value) in work.map(&field) {
        let mut bytes = name.bytes();
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let good = bytes
            .next()
            .is_some_and(|byte| word(byte) && !byte.is_ascii_digit())
            && bytes.all(word);
        if !good {
            work.refuse(
                &value,
                "is no name of a variable that an EnvironmentConfig takes",
            );
        }
    }
    if work.refusals.len() == before {
        match field.node.is_empty() {
            true => work.drop(&field, "it is empty"),
            false => work.copy(&field, "EnvironmentConfig", "", &["variables"]),
        }
    }
}

fn modules(work: &mut Work<'_>) {
    const KIND: &str = "KernelModuleConfig";
    let Some(field) = work.at(&["machine", "kernel", "modules"]) else {
        return;
    };
    for module in work.list(&field) {
        let Some(name) = module.at(&["name"]) else {
            work.refuse(&module, "has no `name`");
            continue;
        };
        let Some(text) = work.text(&name) else {
            continue;
        };
        if work.has_draft(KIND, &text) {
            work.refuse(
                &module,
                format!("another entry is for the module {text} too"),
            );
            continue;
        }
        work.draft(KIND, &text);
        work.moved(&name, KIND, &text, &[]);
        if let Some(parameters) = module.at(&["parameters"]) {
            match parameters.node.is_empty() {
                true => work.drop(&parameters, "it is empty"),
                false => work.copy(&parameters, KIND, &text, &["parameters"]),
            }
        }
    }
}

/// The document switches it on, so there is none where it is off.
fn kube_prism(work: &mut Work<'_>) {
    const PORT: u64 = 7445;
    let Some(section) = work.at(&["machine", "features", "kubePrism"]) else {
        return;
    };
    let enabled = section.at(&["enabled"]);
    let on = enabled
        .as_ref()
        .is_some_and(|field| work.flag(field) == Some(true));
    if !on {
        if !enabled.is_some_and(|field| work.is_taken(&field.path)) {
            work.drop(&section, "it is switched off");
        }
        return;
    }
    let given = section.at(&["port"]);
    let port = given.as_ref().and_then(|field| work.number(field, 65535));
    let value = Value::from(port.filter(|port| *port > 0).unwrap_or(PORT));
    match given.filter(|field| !work.is_taken(&field.path)) {
        Some(field) => work.put(&field, "KubePrismConfig", "", &["port"], value),
        None => work.imply("KubePrismConfig", "", &["port"], value),
    }
    if let Some(field) = enabled {
        work.moved(&field, "KubePrismConfig", "", &[]);
    }
}

fn talos_access(work: &mut Work<'_>) {
    const KIND: &str = "KubeTalosAPIAccessConfig";
    let Some(section) = work.at(&["machine", "features", "kubernetesTalosAPIAccess"]) else {
        return;
    };
    let enabled = section.at(&["enabled"]);
    let on = enabled
        .as_ref()
        .is_some_and(|field| work.flag(field) == Some(true));
    if !on {
        if !enabled.is_some_and(|field| work.is_taken(&field.path)) {
            work.drop(&section, "it is switched off");
        }
        return;
    }
    if !work.admits(&section, KIND) {
        return;
    }
    work.draft(KIND, "");
    if let Some(field) = enabled {
        work.moved(&field, KIND, "", &[]);
    }
    for key in ["allowedRoles", "allowedKubernetesNamespaces"] {
        if let Some(field) = section.at(&[key]) {
            work.copy(&field, KIND, "", &[key]);
        }
    }
}

fn pods(work: &mut Work<'_>) {
    const KIND: &str = "KubeStaticPodConfig";
    let Some(field) = work.at(&["machine", "pods"]) else {
        return;
    };
    for pod in work.list(&field) {
        let part = |key: &str| {
            pod.node
                .at(&["metadata", key])
                .and_then(|node| node.as_str())
                .unwrap_or("default")
        };
        let name = format!("{}-{}", part("namespace"), part("name"));
        if work.has_draft(KIND, &name) {
            work.refuse(&pod, format!("another pod is {name} too"));
        } else if !is_subdomain(&name) {
            work.refuse(&pod, "has a name that a KubeStaticPodConfig cannot have");
        } else {
            work.put(&pod, KIND, &name, &["pod"], pod.value());
        }
    }
}

/// Returns whether a text can be the name of a document of Kubernetes.
pub(super) fn is_subdomain(text: &str) -> bool {
    let label = |label: &str| {
        let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !label.is_empty()
            && label.bytes().all(|byte| alphanumeric(byte) || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}
