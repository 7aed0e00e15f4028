//! PostgreSQL.

mod connect;
mod error;
pub(crate) mod home;
mod migrate;
mod notify;
mod open;
mod outbox;
mod param;
mod pool;
mod session;
mod settings;
mod store;
mod tls;
mod trip;

#[cfg(test)]
mod tests;
