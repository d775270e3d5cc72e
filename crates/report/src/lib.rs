//! Turns runs into HTML, SVG and text.
//!
//! Every output is one module with one function that takes runs and returns text:
//! [`html::page`] the report, [`figure::figures`] the figures as files, [`text`] what
//! the terminal shows. Another format is another such module. All take names and
//! words from [`words`] and distributions from [`data`], so every output calls the same
//! thing by the same name.
//!
//! Architecture invariant: no I/O and no clock. The same runs give the same bytes.
#![forbid(unsafe_code)]

pub mod aimed;
mod cost_sides;
pub mod data;
pub mod describe;
pub mod explanation;
pub mod export;
pub mod figure;
pub mod history;
pub mod html;
mod latest;
mod legs;
pub mod published;
mod replicates;
pub mod search;
pub mod sections;
mod subject;
pub mod text;
pub mod words;

pub use figure::figures;
pub use html::{Options, page as html};
