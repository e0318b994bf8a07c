//! What differs between two machine configurations by meaning, and the patch that leads from one to the other.
