//! Resources: get, list, watch, definitions.
