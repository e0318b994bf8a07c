//! The services of a machine.
