//! What programs need to know of a machine configuration, whichever documents say it.
