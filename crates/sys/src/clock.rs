//! Clocks and their cost.
