//! The zareba program.
fn main() {}
