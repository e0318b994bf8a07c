//! The program on the official configuration library, in three versions.
