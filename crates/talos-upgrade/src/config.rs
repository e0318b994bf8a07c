//! The images in a machine configuration: reading them, and changing one without touching anything else.

use std::collections::BTreeMap;

use semver::Version;
use serde_json::{Value, json};
use talos_config::patch::{Patch, apply};
use talos_config::{Error, Schema, yaml};
use talos_kube::Component;

/// What a machine configuration says about components.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Images {
    /// The images it names.
    pub(crate) configured: BTreeMap<Component, String>,
    /// The components it turns off.
    pub(crate) disabled: Vec<Component>,
}

/// Reads the images a configuration names.
pub(crate) fn read(text: &str) -> Result<Images, Error> {
    let documents = yaml::read_documents(text)?;
    let mut images = Images::default();
    for component in Component::ALL {
        let place = place(component);
        let own = document(&documents, place.kind);
        let image = match own {
            Some(document) => document.get("image"),
            None => main(&documents)
                .and_then(|main| main.pointer(&format!("/{}/image", place.path.join("/")))),
        };
        let image = image
            .and_then(Value::as_str)
            .filter(|image| !image.is_empty());
        if let Some(image) = image {
            images.configured.insert(component, image.to_owned());
        }
        let disabled = |path: String| {
            let flag = main(&documents).and_then(|main| main.pointer(&path));
            flag == Some(&Value::Bool(true))
        };
        let off = match own {
            Some(document) => document.get("enabled") == Some(&Value::Bool(false)),
            None => disabled(format!("/{}/disabled", place.path.join("/"))),
        };
        // kube-controller-manager and kube-scheduler are turned off node by node.
        let off_here = disabled(format!("/machine/controlPlane/{}/disabled", place.path[1]));
        if off || off_here {
            images.disabled.push(component);
        }
    }
    Ok(images)
}

/// The configuration with another image of one component: in that component's own document where there is one (Talos
/// 1.14), else in the main document. Every other line stays as it is.
pub(crate) fn with_image(
    text: &str,
    talos: Option<&Version>,
    component: Component,
    image: &str,
) -> Result<String, Error> {
    let place = place(component);
    let documents = yaml::read_documents(text)?;
    let patch = match document(&documents, place.kind) {
        Some(_) => json!({"apiVersion": "v1alpha1", "kind": place.kind, "image": image}),
        None => place
            .path
            .iter()
            .rev()
            .fold(json!({"image": image}), |inner, key| json!({*key: inner})),
    };
    let patch = Patch::parse(&patch.to_string())?;
    let schema = talos.map_or_else(Schema::newest, |talos| {
        Schema::for_talos(&talos.to_string())
    });
    Ok(apply(text, &[patch], schema)?.text)
}

struct Place {
    /// The kind of the component's own document.
    kind: &'static str,
    /// Where it is in the main document.
    path: [&'static str; 2],
}

fn place(component: Component) -> Place {
    let (kind, path) = match component {
        Component::KubeApiserver => ("KubeAPIServerConfig", ["cluster", "apiServer"]),
        Component::KubeControllerManager => (
            "KubeControllerManagerConfig",
            ["cluster", "controllerManager"],
        ),
        Component::KubeScheduler => ("KubeSchedulerConfig", ["cluster", "scheduler"]),
        Component::KubeProxy => ("KubeProxyConfig", ["cluster", "proxy"]),
        Component::Kubelet => ("KubeletConfig", ["machine", "kubelet"]),
    };
    Place { kind, path }
}

fn document<'a>(documents: &'a [Value], kind: &str) -> Option<&'a Value> {
    documents.iter().find(|document| document["kind"] == kind)
}

fn main(documents: &[Value]) -> Option<&Value> {
    documents
        .iter()
        .find(|document| document.is_object() && document.get("kind").is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
version: v1alpha1 # the schema
machine:
    type: controlplane
    kubelet:
        # pinned until the mirror has more
        image: reg.local/kubelet:v1.33.4-fat
cluster:
    apiServer:
        image: \"registry.k8s.io/kube-apiserver:v1.33.4\" # keep
        certSANs:
            - 10.5.0.2
    proxy:
        disabled: true
---
apiVersion: v1alpha1
kind: SomethingNew
unknown: [1,   2]
";

    /// The lines that differ between a configuration and the same with another image.
    fn changed(config: &str, talos: &str, component: Component, image: &str) -> Vec<String> {
        let talos = talos.parse().unwrap();
        let next = with_image(config, Some(&talos), component, image).unwrap();
        let old: Vec<&str> = config.lines().collect();
        let new: Vec<&str> = next.lines().collect();
        let gone = old.iter().filter(|line| !new.contains(line));
        let come = new.iter().filter(|line| !old.contains(line));
        let gone = gone.map(|line| format!("-{line}"));
        gone.chain(come.map(|line| format!("+{line}"))).collect()
    }

    #[test]
    fn only_the_line_with_the_image_changes() {
        assert_eq!(
            changed(
                CONFIG,
                "1.13.9",
                Component::KubeApiserver,
                "registry.k8s.io/kube-apiserver:v1.34.0"
            ),
            [
                "-        image: \"registry.k8s.io/kube-apiserver:v1.33.4\" # keep",
                "+        image: \"registry.k8s.io/kube-apiserver:v1.34.0\" # keep",
            ]
        );
        assert_eq!(
            changed(
                CONFIG,
                "1.13.9",
                Component::Kubelet,
                "reg.local/kubelet:v1.34.0-fat"
            ),
            [
                "-        image: reg.local/kubelet:v1.33.4-fat",
                "+        image: reg.local/kubelet:v1.34.0-fat",
            ]
        );
    }

    #[test]
    fn an_image_that_is_not_named_yet_is_added() {
        let image = "registry.k8s.io/kube-scheduler:v1.34.0";
        assert_eq!(
            changed(CONFIG, "1.13.9", Component::KubeScheduler, image),
            [
                "+    scheduler:",
                "+        image: registry.k8s.io/kube-scheduler:v1.34.0"
            ]
        );
    }

    #[test]
    fn a_components_own_document_goes_first() {
        let config =
            format!("{CONFIG}---\napiVersion: v1alpha1\nkind: KubeletConfig\nimage: k:v1.36.0\n");
        assert_eq!(
            changed(&config, "1.14.1", Component::Kubelet, "k:v1.37.0"),
            ["-image: k:v1.36.0", "+image: k:v1.37.0"]
        );
        let read = read(&config).unwrap();
        assert_eq!(read.configured[&Component::Kubelet], "k:v1.36.0");
    }

    #[test]
    fn images_and_what_is_turned_off_are_read() {
        let read = read(CONFIG).unwrap();
        assert_eq!(
            read.configured[&Component::KubeApiserver],
            "registry.k8s.io/kube-apiserver:v1.33.4"
        );
        assert_eq!(read.configured.len(), 2);
        assert_eq!(read.disabled, [Component::KubeProxy]);
        let here = "machine:\n  controlPlane:\n    scheduler:\n      disabled: true\n";
        assert_eq!(
            super::read(here).unwrap().disabled,
            [Component::KubeScheduler]
        );
        let off = "machine: {}\n---\napiVersion: v1alpha1\nkind: KubeSchedulerConfig\nenabled: false\nimage: s:v1\n";
        assert_eq!(
            super::read(off).unwrap().disabled,
            [Component::KubeScheduler]
        );
    }
}
