//! PostgreSQL.

mod error;
mod param;
mod pool;
mod session;
mod trip;
