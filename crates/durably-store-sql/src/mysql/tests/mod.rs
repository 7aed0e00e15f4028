//! Tried on a real server.

mod session;
mod statements;
