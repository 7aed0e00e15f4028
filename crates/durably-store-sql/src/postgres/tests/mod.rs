//! Tried on a real server.

mod migrate;
mod notify;
mod open;
mod proxy;
mod scene;
mod session;
