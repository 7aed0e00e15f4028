//! The contract suite that every durably store passes
