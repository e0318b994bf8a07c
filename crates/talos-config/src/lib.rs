//! The files people hold: machine configurations, talosconfig and kubeconfig.
