//! The API daemon of each node: transport, roles and routing.
