//! The simulated Kubernetes API and reaching it.
