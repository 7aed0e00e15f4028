//! The stores on database servers: PostgreSQL and MySQL or MariaDB, usable by many processes at the
//! same time.
//!
//! - A command locks and loads the rows that it may touch, does to them what the memory store does
//!   (`durably_store::rows`), and writes what has changed. So all stores have one set of rules, and
//!   what is said here is only which rows a command needs, in which order they are locked, and how
//!   they are written.
//! - SQL stands in files under `sql/`: one text where the dialects allow, otherwise one for each.
//! - A session (`session`) is a connection in the hands of one command. Each dialect has one.

mod claim;
mod command;
mod commit;
mod deliver;
mod eager;
mod error;
mod field;
mod find;
mod floors;
mod kept;
mod lead;
mod life;
mod load;
mod migrate;
pub mod mysql;
pub mod postgres;
mod record;
mod session;
mod store;
mod sweep;
mod text;
mod url;
mod work;
mod write;
