//! The files people hold: machine configurations, talosconfig and kubeconfig.

pub mod diff;
mod error;
pub mod kubeconfig;
pub mod machine;
pub mod mask;
pub mod patch;
mod schema;
pub mod talosconfig;
pub mod yaml;

pub use error::{Error, Place};
pub use schema::Schema;
