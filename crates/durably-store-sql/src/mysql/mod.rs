//! MySQL and MariaDB. What both understand, and nothing else: tests run on MariaDB, so a test keeps
//! out of the statements what MySQL lacks.

mod connect;
mod error;
mod line;
mod migrate;
mod open;
mod param;
mod pool;
mod probe;
mod session;
mod settings;
mod store;
mod template;
#[cfg(test)]
mod tests;
