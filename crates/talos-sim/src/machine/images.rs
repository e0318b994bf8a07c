//! Container images of a machine, through the old calls and the newer image service.

use std::pin::Pin;

use futures::{Stream, stream};
use regex::Regex;
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;
use talos_api::common::{ContainerDriver, ContainerdInstance, ContainerdNamespace};
use talos_api::machine;
use talos_api::machine::image_service_pull_layer_progress::Status as LayerStatus;
use talos_api::machine::image_service_pull_response::Response;
use tonic::Status;

use crate::apid::Context;
use crate::machine::services::at;
use crate::node::NodeState;

/// Any stream of answers.
pub(crate) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Size that every image has, in bytes.
const SIZE: i64 = 34_348_854;

/// `ImagePull`: fetches an image into a namespace.
pub(crate) async fn pull_old(
    context: Context,
    request: machine::ImagePullRequest,
) -> Result<machine::ImagePullResponse, Status> {
    let namespace = old_namespace(request.namespace)?;
    pull(&context, namespace, &request.reference).await?;
    Ok(machine::ImagePullResponse {
        messages: vec![machine::ImagePull::default()],
    })
}

/// `ImageList`: the images of a namespace.
pub(crate) async fn list_old(
    context: Context,
    request: machine::ImageListRequest,
) -> Result<Answers<machine::ImageListResponse>, Status> {
    let namespace = old_namespace(request.namespace)?;
    let created_at = Some(at(context.shared.now()));
    let images = images(&context.node, namespace)
        .into_iter()
        .map(move |name| {
            Ok(machine::ImageListResponse {
                metadata: None,
                digest: digest(&name),
                name,
                size: SIZE,
                created_at,
            })
        });
    Ok(Box::pin(stream::iter(images)))
}

/// `ImageService.List`: the images of a containerd instance.
pub(crate) async fn list(
    context: Context,
    request: machine::ImageServiceListRequest,
) -> Result<Answers<machine::ImageServiceListResponse>, Status> {
    let namespace = instance(request.containerd)?;
    let created_at = Some(at(context.shared.now()));
    let images = images(&context.node, namespace)
        .into_iter()
        .map(move |name| {
            let labels = [("io.cri-containerd.image".to_owned(), "managed".to_owned())];
            Ok(machine::ImageServiceListResponse {
                digest: digest(&name),
                name,
                size: SIZE,
                created_at,
                labels: labels.into(),
            })
        });
    Ok(Box::pin(stream::iter(images)))
}

/// `ImageService.Pull`: progress unless the image is there already, then the pinned name.
pub(crate) async fn pull_new(
    context: Context,
    request: machine::ImageServicePullRequest,
) -> Result<Answers<machine::ImageServicePullResponse>, Status> {
    let namespace = instance(request.containerd)?;
    let reference = request.image_ref;
    let is_present = images(&context.node, namespace).contains(&reference);
    pull(&context, namespace, &reference).await?;
    let layer = digest(&format!("layer of {reference}"));
    let progress = |status: LayerStatus, offset| {
        Response::PullProgress(machine::ImageServicePullProgress {
            layer_id: layer.clone(),
            progress: Some(machine::ImageServicePullLayerProgress {
                status: status.into(),
                elapsed: Some(prost_types::Duration {
                    seconds: 0,
                    nanos: 1_000_000,
                }),
                offset,
                total: SIZE,
            }),
        })
    };
    let mut answers = Vec::new();
    if !is_present {
        answers.push(progress(LayerStatus::Downloading, SIZE / 2));
        answers.push(progress(LayerStatus::DownloadComplete, SIZE));
        answers.push(progress(LayerStatus::ExtractComplete, SIZE));
    }
    let name = reference
        .rsplit_once(':')
        .map_or(reference.as_str(), |(name, _)| name);
    answers.push(Response::Name(format!("{name}@{}", digest(&reference))));
    let answers = answers.into_iter();
    let answers = answers.map(|answer| {
        Ok(machine::ImageServicePullResponse {
            response: Some(answer),
        })
    });
    Ok(Box::pin(stream::iter(answers)))
}

/// `ImageService.Remove`: forgets an image that was pulled.
pub(crate) async fn remove(
    context: Context,
    request: machine::ImageServiceRemoveRequest,
) -> Result<(), Status> {
    let namespace = instance(request.containerd)?;
    if context
        .node
        .machine
        .forget_image(namespace, &request.image_ref)
    {
        return Ok(());
    }
    Err(Status::not_found(format!(
        "image {:?}: not found",
        request.image_ref
    )))
}

async fn pull(context: &Context, namespace: i32, reference: &str) -> Result<(), Status> {
    let Context { shared, node, .. } = context;
    check_reference(reference)?;
    tokio::time::sleep(shared.options.delays.image_pull).await;
    if node.faults.is_missing(reference) {
        return Err(Status::not_found(format!(
            "error pulling image: 1 error(s) occurred:\n\tfailed to pull image {reference:?}: failed to resolve reference {reference:?}: {reference}: not found"
        )));
    }
    node.machine.keep_image(namespace, reference);
    Ok(())
}

/// Refuses what is no image reference.
fn check_reference(reference: &str) -> Result<(), Status> {
    static VALID: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"^([a-zA-Z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[\w][\w.-]{0,127})?(@sha256:[a-f0-9]{64})?$",
        )
        .ok()
    });
    if VALID.as_ref().is_none_or(|valid| valid.is_match(reference)) {
        return Ok(());
    }
    let repository = reference
        .split_once('/')
        .map_or(reference, |(_, rest)| rest);
    let repository = repository
        .rsplit_once(':')
        .map_or(repository, |(name, _)| name);
    let problem = if repository.chars().any(char::is_uppercase) {
        format!("repository name ({repository}) must be lowercase")
    } else {
        "invalid reference format".to_owned()
    };
    Err(Status::unknown(format!(
        "failed to parse image reference {reference:?}: invalid reference format: {problem}"
    )))
}

/// What a machine has: the images that its configuration names, and those that were pulled.
fn images(node: &NodeState, namespace: i32) -> Vec<String> {
    let mut images = node.machine.images(namespace);
    if namespace == i32::from(ContainerdNamespace::NsCri) {
        images.push("registry.k8s.io/coredns/coredns:v1.14.6".to_owned());
        images.push("registry.k8s.io/pause:3.10".to_owned());
        if let Some(config) = node.documents() {
            let components = ["apiServer", "controllerManager", "scheduler", "proxy"];
            let named = components
                .iter()
                .filter_map(|component| config.image(component));
            images.extend(named.map(str::to_owned));
        }
    } else if let Some(image) = node
        .documents()
        .as_ref()
        .and_then(|config| config.kubelet_image())
    {
        images.push(image.to_owned());
    }
    images.sort();
    images.dedup();
    images
}

fn old_namespace(namespace: i32) -> Result<i32, Status> {
    match ContainerdNamespace::try_from(namespace) {
        Ok(ContainerdNamespace::NsSystem | ContainerdNamespace::NsCri) => Ok(namespace),
        Ok(other) => Err(Status::invalid_argument(format!(
            "invalid namespace {}",
            other.as_str_name()
        ))),
        Err(_) => Err(Status::invalid_argument(format!(
            "invalid namespace {namespace}"
        ))),
    }
}

fn instance(containerd: Option<ContainerdInstance>) -> Result<i32, Status> {
    let containerd = containerd.unwrap_or_default();
    let namespace = old_namespace(containerd.namespace)?;
    match ContainerDriver::try_from(containerd.driver) {
        Ok(ContainerDriver::Cri) => Ok(namespace),
        Ok(ContainerDriver::Containerd)
            if namespace == i32::from(ContainerdNamespace::NsSystem) =>
        {
            Ok(namespace)
        }
        _ => Err(Status::invalid_argument("invalid containerd instance")),
    }
}

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reference: &str, expected: Result<(), &str>) {
        let found = check_reference(reference);
        assert_eq!(
            found.as_ref().map_err(|status| status.message()).copied(),
            expected
        );
    }

    /// The refusal is recorded (recorded/upgrade/f-errors).
    #[test]
    fn references_are_checked() {
        check("registry.k8s.io/kube-apiserver:v1.34.0", Ok(()));
        check(
            "localhost:5000/a/b_c@sha256:0000000000000000000000000000000000000000000000000000000000000000",
            Ok(()),
        );
        check(
            "registry.k8s.io/UPPER case:v1",
            Err(
                "failed to parse image reference \"registry.k8s.io/UPPER case:v1\": invalid reference format: repository name (UPPER case) must be lowercase",
            ),
        );
    }
}
