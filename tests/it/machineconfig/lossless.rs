//! Edits that leave all other lines alone.
