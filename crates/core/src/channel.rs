//! The protocol between a machine that measures and the one that asked for it: an [`Order`]
//! goes to the measuring side, and [`Message`]s come back over a byte channel during the run.
//!
//! The virtual lab uses it first: a guest finds its order and its [`BoardSetup`] in its
//! initramfs. One whose state is kept for others finds no order there: once it has come to rest
//! it sends [`Event::Pausing`] and pauses, and whatever goes on from there gets its order from
//! the emulator ([`ORDER_FILE`]). Nothing here depends on what carries the bytes.

mod fixed;
mod frames;
mod message;
mod order;
mod setup;

pub use frames::{ChannelError, Decoder, encode};
pub use message::{Event, Message};
pub use order::{Order, OrderedCell, VirtualBoard};
pub use setup::{BoardSetup, MODULES_PATH, ModuleFile, ORDER_FILE, ORDER_PATH, SETUP_PATH};
