//! Credentials that a control plane node issues.

use std::time::Duration;

use talos_api::machine::GenerateClientConfigurationRequest;

use crate::error::from_metadata;
use crate::nodes::only;
use crate::{Node, Result};

/// What a node issued: certificates and a key in PEM, and a talosconfig of them without endpoints.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientConfiguration {
    /// The authorities to trust.
    pub ca: Vec<u8>,
    /// The client's certificate.
    pub crt: Vec<u8>,
    /// The client's private key.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for ClientConfiguration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientConfiguration")
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Has a client certificate with these roles issued, which lives for a time; control plane nodes only.
    ///
    /// # Errors
    /// The node refused it, or the call gave no answer.
    pub async fn generate_client_configuration(
        &self,
        roles: &[String],
        ttl: Duration,
    ) -> Result<ClientConfiguration> {
        let request = GenerateClientConfigurationRequest {
            roles: roles.to_vec(),
            crt_ttl: ttl.try_into().ok(),
        };
        let (answer, context) = self
            .unary(None, async |wire| {
                super::machine(wire)
                    .generate_client_configuration(request)
                    .await
            })
            .await?;
        let message = only(answer.messages, &context)?;
        match from_metadata(message.metadata.as_ref(), &context) {
            Some(error) => Err(error),
            None => Ok(ClientConfiguration {
                ca: message.ca,
                crt: message.crt,
                key: message.key,
            }),
        }
    }
}
