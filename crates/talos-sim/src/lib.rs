//! Simulated Talos clusters on real sockets, for tests and demonstrations.
