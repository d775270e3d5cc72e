//! A kernel's own symbol tables, in images of both architectures.

use punctual_lab::microscope::read_symbols;

pub fn target(bytes: &[u8]) {
    read_symbols(bytes);
}
