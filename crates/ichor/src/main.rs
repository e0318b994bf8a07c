//! The program `ichor`.

fn main() {}
