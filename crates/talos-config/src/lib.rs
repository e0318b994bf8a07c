//! The files people hold: machine configurations, talosconfig and kubeconfig.

mod error;
pub mod kubeconfig;
pub mod talosconfig;
pub mod yaml;

pub use error::Error;
