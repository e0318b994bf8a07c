//! The state API: get, list and watch of a node's resources.
