//! Tried on a real server.

mod cluster;
mod locks;
mod migrate;
mod open;
mod scene;
mod session;
mod statements;
