//! The loads: one file each, and their registry.
