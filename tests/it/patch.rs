//! Reading and patching machine configuration.
