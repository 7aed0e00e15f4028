//! What is tried on a real server.

mod contract;
mod session;
mod statements;
