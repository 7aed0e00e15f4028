//! PostgreSQL.

mod connect;
mod error;
mod home;
mod param;
mod pool;
mod session;
mod settings;
mod store;
mod tls;
mod trip;
