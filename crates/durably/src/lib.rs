//! Durable execution for Rust programs on the database they already have
