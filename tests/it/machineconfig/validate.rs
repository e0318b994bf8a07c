//! What Talos refuses, and what it should have.
