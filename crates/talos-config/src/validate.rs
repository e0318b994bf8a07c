//! Whether a machine configuration is one that Talos takes, and what in it will not do what was meant.
