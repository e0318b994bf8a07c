//! X.509 for Talos clusters: parse, judge and issue certificates.
