//! Runs in, HTML, SVG, text and JSON out.
#![forbid(unsafe_code)]
