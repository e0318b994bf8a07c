//! Static pods of the control plane as Talos renders them.

use serde_json::{Value, json};

use super::settings::{Component, Settings, tag};
use super::template::{Template, fill};

static PODS: Template = Template::new(|| {
    serde_saphyr::from_str(include_str!("../../../data/kubernetes-static-pods.yaml"))
        .unwrap_or_default()
});

/// The versions that the annotations of a static pod carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StaticPod {
    /// The component that the pod runs.
    pub(crate) component: Component,
    /// Version of the component's config resource.
    pub(crate) config: u64,
    /// Version of the rendered config files; kube-apiserver only.
    pub(crate) files: Option<String>,
    /// Version of the certificates and kubeconfigs.
    pub(crate) secrets: String,
}

impl StaticPod {
    /// Renders the pod.
    pub(crate) fn render(&self, settings: &Settings) -> Value {
        let image = settings.image(self.component);
        let marks = [
            ("version", tag(image)),
            ("image", image),
            ("endpoint", settings.endpoint.as_str()),
            ("service-subnets", &settings.service_subnets.join(",")),
            ("pod-subnets", &settings.pod_subnets.join(",")),
        ];
        let mut pod = fill(&PODS.value()[self.component.name()], &marks);
        let annotations = &mut pod["metadata"]["annotations"];
        if let Some(files) = &self.files {
            annotations["talos.dev/config-file-version"] = json!(files);
        }
        annotations["talos.dev/config-version"] = json!(self.config.to_string());
        annotations["talos.dev/secrets-version"] = json!(self.secrets);
        if let Some(command) = pod.pointer_mut("/spec/containers/0/command") {
            add_arguments(command, settings.extra_args.get(&self.component));
        }
        pod["status"] = json!({});
        pod
    }
}

/// Adds further arguments; one that is there already is replaced.
fn add_arguments(command: &mut Value, extra: Option<&Value>) {
    let Some(arguments) = command.as_array_mut() else {
        return;
    };
    for (name, value) in extra.and_then(Value::as_object).into_iter().flatten() {
        let prefix = format!("--{name}=");
        arguments.retain(|argument| !argument.as_str().unwrap_or_default().starts_with(&prefix));
        let values = match value {
            Value::Array(values) => values.iter().map(text).collect(),
            other => vec![text(other)],
        };
        arguments.extend(
            values
                .into_iter()
                .map(|value| json!(format!("{prefix}{value}"))),
        );
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
