//! Tried on a real server.

mod migrate;
mod notify;
mod open;
mod pooler;
mod scene;
mod server;
mod session;
mod statements;
