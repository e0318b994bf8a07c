//! Reaching the Kubernetes of a Talos cluster.
