//! The SQLite adapter of durably
