//! Container images of a node, through the service that Talos 1.13 brought, or else the calls before it.

use std::time::Duration;

use jiff::Timestamp;
use talos_api::common::{ContainerDriver, ContainerdInstance, ContainerdNamespace};
use talos_api::machine::image_service_client::ImageServiceClient;
use talos_api::machine::image_service_pull_layer_progress::Status;
use talos_api::machine::image_service_pull_response::Response;
use talos_api::machine::{
    ImageListRequest, ImagePullRequest, ImageServiceListRequest, ImageServicePullProgress,
    ImageServicePullRequest,
};

use super::{machine, timestamp};
use crate::error::from_metadata;
use crate::nodes::{MESSAGE_LIMIT, only};
use crate::wire::Wire;
use crate::{Error, Node, Result};

/// Which images of a node are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageScope {
    /// Those of Kubernetes.
    #[default]
    Kubernetes,
    /// Those of Talos itself, on disk.
    System,
}

/// A container image on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The reference.
    pub name: String,
    /// The digest of what it points to.
    pub digest: String,
    /// Size in bytes.
    pub size: i64,
    /// When it came to the node.
    pub created: Option<Timestamp>,
}

/// How far a layer of a pull is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullProgress {
    /// The layer.
    pub layer: String,
    /// What happens to it; none if this client does not know.
    pub status: Option<LayerStatus>,
    /// For how long it is under way.
    pub elapsed: Option<Duration>,
    /// Bytes done.
    pub offset: i64,
    /// Bytes in all; 0 if unknown.
    pub total: i64,
}

/// What happens to a layer of a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerStatus {
    /// It is being fetched.
    Downloading,
    /// It is here.
    Downloaded,
    /// It is being unpacked.
    Extracting,
    /// It is ready.
    Extracted,
    /// It was here before.
    Present,
}

impl Node {
    /// Lists images.
    ///
    /// # Errors
    /// The call gave no answer.
    pub async fn image_list(&self, scope: ImageScope) -> Result<Vec<Image>> {
        match self.image_service_list(scope).await {
            Err(Error::NotImplemented { .. }) => self.old_image_list(scope).await,
            other => other,
        }
    }

    /// Pulls an image and returns the reference it is known by: pinned to its digest since Talos 1.13. `progress` hears
    /// of each layer, if the node tells.
    ///
    /// # Errors
    /// The image does not exist ([`Error::NotFound`]), or the call gave no answer. A pull takes as long as it takes: drop
    /// the future to give up.
    pub async fn image_pull(
        &self,
        scope: ImageScope,
        reference: &str,
        progress: impl FnMut(PullProgress) + Send,
    ) -> Result<String> {
        match self.image_service_pull(scope, reference, progress).await {
            Err(Error::NotImplemented { .. }) => {
                self.old_image_pull(scope, reference).await?;
                Ok(reference.to_string())
            }
            other => other,
        }
    }

    async fn image_service_list(&self, scope: ImageScope) -> Result<Vec<Image>> {
        let request = ImageServiceListRequest {
            containerd: Some(scope.instance()),
        };
        let patience = Some(self.request_timeout());
        let mut messages = self
            .stream(None, patience, async |wire| {
                images(wire).list(request).await
            })
            .await?;
        let mut list = Vec::new();
        while let Some(image) = messages.next().await? {
            list.push(Image {
                name: image.name,
                digest: image.digest,
                size: image.size,
                created: image.created_at.and_then(timestamp),
            });
        }
        Ok(list)
    }

    async fn old_image_list(&self, scope: ImageScope) -> Result<Vec<Image>> {
        let request = ImageListRequest {
            namespace: scope.namespace().into(),
        };
        let patience = Some(self.request_timeout());
        let mut messages = self
            .stream(None, patience, async |wire| {
                machine(wire).image_list(request).await
            })
            .await?;
        let mut list = Vec::new();
        while let Some(image) = messages.next().await? {
            if let Some(error) = from_metadata(image.metadata.as_ref(), &messages.context) {
                return Err(error);
            }
            list.push(Image {
                name: image.name,
                digest: image.digest,
                size: image.size,
                created: image.created_at.and_then(timestamp),
            });
        }
        Ok(list)
    }

    async fn image_service_pull(
        &self,
        scope: ImageScope,
        reference: &str,
        mut progress: impl FnMut(PullProgress) + Send,
    ) -> Result<String> {
        let request = ImageServicePullRequest {
            containerd: Some(scope.instance()),
            image_ref: reference.to_string(),
        };
        let mut messages = self
            .stream(None, None, async |wire| images(wire).pull(request).await)
            .await?;
        let mut name = None;
        while let Some(message) = messages.next().await? {
            match message.response {
                Some(Response::Name(pinned)) => name = Some(pinned),
                Some(Response::PullProgress(layer)) => progress(layer.into()),
                None => {}
            }
        }
        name.ok_or_else(|| messages.context.answer("ended before the image was there"))
    }

    async fn old_image_pull(&self, scope: ImageScope, reference: &str) -> Result<()> {
        let request = ImagePullRequest {
            namespace: scope.namespace().into(),
            reference: reference.to_string(),
        };
        let (answer, context) = self
            .patient_unary(async |wire| machine(wire).image_pull(request).await)
            .await?;
        let message = only(answer.messages, &context)?;
        from_metadata(message.metadata.as_ref(), &context).map_or(Ok(()), Err)
    }
}

fn images(wire: Wire) -> ImageServiceClient<Wire> {
    ImageServiceClient::new(wire)
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT)
}

impl ImageScope {
    fn namespace(self) -> ContainerdNamespace {
        match self {
            Self::Kubernetes => ContainerdNamespace::NsCri,
            Self::System => ContainerdNamespace::NsSystem,
        }
    }

    fn instance(self) -> ContainerdInstance {
        ContainerdInstance {
            driver: ContainerDriver::Cri.into(),
            namespace: self.namespace().into(),
        }
    }
}

impl From<ImageServicePullProgress> for PullProgress {
    fn from(layer: ImageServicePullProgress) -> Self {
        let progress = layer.progress.unwrap_or_default();
        Self {
            layer: layer.layer_id,
            status: Status::try_from(progress.status)
                .ok()
                .map(|status| match status {
                    Status::Downloading => LayerStatus::Downloading,
                    Status::DownloadComplete => LayerStatus::Downloaded,
                    Status::Extracting => LayerStatus::Extracting,
                    Status::ExtractComplete => LayerStatus::Extracted,
                    Status::AlreadyExists => LayerStatus::Present,
                }),
            elapsed: progress.elapsed.and_then(|elapsed| elapsed.try_into().ok()),
            offset: progress.offset,
            total: progress.total,
        }
    }
}
