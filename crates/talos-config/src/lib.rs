//! The files people hold: machine configurations, talosconfig and kubeconfig.

pub mod compare;
pub mod diff;
mod error;
mod facts;
pub mod generate;
pub mod kubeconfig;
pub mod machine;
pub mod mask;
pub mod migrate;
pub mod patch;
mod schema;
pub mod talosconfig;
pub mod validate;
pub mod yaml;

pub use error::{Error, Place};
pub use schema::Schema;
