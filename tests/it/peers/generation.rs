//! Generation held against the official library.
