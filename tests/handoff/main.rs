//! The probe `handoff` against programs that measure the same, and what it leaves behind.

mod against;
mod course;
