//! Our client against simulated nodes: endpoints, TLS, errors, node targeting.
