//! PostgreSQL.

mod connect;
mod error;
mod home;
mod migrate;
mod notify;
mod open;
mod outbox;
mod param;
mod pool;
mod session;
mod settings;
mod sql;
mod tls;
mod trip;

#[cfg(test)]
mod tests;
