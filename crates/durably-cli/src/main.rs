//! The durably command.
fn main() {}
