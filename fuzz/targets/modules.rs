//! What kernel modules say about themselves.

use punctual_lab::modules::Modinfo;

pub fn target(bytes: &[u8]) {
    let _ = Modinfo::read(bytes);
}
