//! Kubernetes upgrades of Talos clusters: plan and run.
