//! The certificates of a whole cluster: probe and check.
