//! Images: that they have a tag, and that the Kubernetes they are is one that the Talos version runs.

use crate::validate::at::{At, Document};
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value;

/// The first and last minor version of Kubernetes that each minor version of Talos 1 runs, from 1.8 on.
const KUBERNETES: [(u64, u64); 7] = [
    (26, 31),
    (27, 32),
    (28, 33),
    (29, 34),
    (30, 35),
    (31, 36),
    (32, 37),
];

/// The fields of the main document that hold an image of Kubernetes.
const IMAGES: [[&str; 3]; 5] = [
    ["machine", "kubelet", "image"],
    ["cluster", "apiServer", "image"],
    ["cluster", "controllerManager", "image"],
    ["cluster", "scheduler", "image"],
    ["cluster", "proxy", "image"],
];

/// Checks the images of Kubernetes of all documents.
pub(super) fn check(documents: &[Document<'_>], context: &Context<'_>, sink: &mut Sink<'_>) {
    let Some(range) = range(context) else {
        return;
    };
    for document in documents {
        let root = document.root();
        match document.kind {
            _ if document.is_main() => {
                for path in &IMAGES {
                    kubernetes(&root.fields(path), range, context, sink);
                }
            }
            "KubeletConfig"
            | "KubeAPIServerConfig"
            | "KubeControllerManagerConfig"
            | "KubeSchedulerConfig"
            | "KubeProxyConfig" => {
                kubernetes(&root.field("image"), range, context, sink);
            }
            _ => {}
        }
    }
}

/// Checks that an image is told by a tag or digest.
pub(super) fn reference(at: &At<'_>, sink: &mut Sink<'_>) {
    let text = at.text();
    let pattern = at.document().kind == "ImageVerificationConfig";
    if !pattern && !text.is_empty() && !text.contains('@') && value::image_tag(&text).is_none() {
        sink.warning("no-tag", at, "the image has neither a tag nor a digest")
            .hint("without one, it is whatever is called `latest` at the moment");
    }
}

fn range(context: &Context<'_>) -> Option<(u64, u64)> {
    let mut parts = context.version().split(['.', '-', '+']);
    let major = parts.next()?;
    let minor: usize = parts.next()?.parse().ok()?;
    match major {
        "1" => KUBERNETES.get(minor.checked_sub(8)?).copied(),
        _ => None,
    }
}

fn kubernetes(at: &At<'_>, (first, last): (u64, u64), context: &Context<'_>, sink: &mut Sink<'_>) {
    let text = at.text();
    let minor = value::image_tag(&text).and_then(|tag| {
        let mut parts = tag.strip_prefix('v')?.split('.');
        let major: u64 = parts.next()?.parse().ok()?;
        let minor: u64 = parts.next()?.parse().ok()?;
        (major == 1).then_some(minor)
    });
    if minor.is_some_and(|minor| !(first..=last).contains(&minor)) {
        let message = format!(
            "Talos {} runs Kubernetes 1.{first} to 1.{last}",
            context.version()
        );
        sink.warning("kubernetes-version", at, message);
    }
}
