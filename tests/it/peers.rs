//! Independent peers: programs on the official libraries.
