//! Attribute and derive macros of Perpetua.
