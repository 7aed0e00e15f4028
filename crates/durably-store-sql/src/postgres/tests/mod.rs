//! Tried on a real server.

mod migrate;
mod notify;
mod open;
mod scene;
mod session;
