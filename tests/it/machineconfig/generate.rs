//! Generated secrets, configurations, keys and certificates.
