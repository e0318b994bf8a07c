//! What time a node has.

use jiff::Timestamp;
use talos_api::time::time_service_client::TimeServiceClient;

use super::timestamp;
use crate::error::from_metadata;
use crate::nodes::only;
use crate::{Node, Result};

impl Node {
    /// Asks what the node's clock says; to answer, the node asks its time server too.
    ///
    /// # Errors
    /// The call gave no answer, as when the node cannot ask its time server.
    pub async fn time(&self) -> Result<Timestamp> {
        let (answer, context) = self
            .unary(None, async |wire| {
                TimeServiceClient::new(wire).time(()).await
            })
            .await?;
        let message = only(answer.messages, &context)?;
        if let Some(error) = from_metadata(message.metadata.as_ref(), &context) {
            return Err(error);
        }
        message
            .localtime
            .and_then(timestamp)
            .ok_or_else(|| context.answer("holds no time"))
    }
}
