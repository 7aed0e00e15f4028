//! MySQL and MariaDB. What both understand, and nothing else: tests run on MariaDB, so a test keeps
//! out of the statements what MySQL lacks.

mod error;
mod line;
mod param;
mod pool;
mod server;
mod session;
mod template;
