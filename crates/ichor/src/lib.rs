//! The program `ichor` as a library.
