//! The rbuilder command.
fn main() {}
