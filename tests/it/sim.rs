//! The simulated cluster against recordings of a real one.
