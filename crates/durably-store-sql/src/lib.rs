//! The stores on database servers: PostgreSQL and MySQL or MariaDB, usable by many processes at the
//! same time.
//!
//! - A command locks and loads the rows that it may touch, does to them what the memory store does
//!   (`durably_store::rows`), and writes what has changed. So all stores have one set of rules, and
//!   what is said here is only which rows a command needs, in which order they are locked, and how
//!   they are written.
//! - SQL stands in files under `sql/`: one text where the dialects allow, otherwise one for each.
//! - A session (`session`) is a connection in the hands of one command. Each dialect has one.

mod error;
mod mysql;
mod postgres;
mod session;
mod text;
