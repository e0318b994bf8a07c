//! Kubernetes upgrades.
