//! Certificates: probing and judging what is served.

mod probe;
