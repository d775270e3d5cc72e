//! What a machine that measures and the one that asked for it say to each other: an
//! [`Order`] goes to the side that measures, [`Message`]s come back over a channel of bytes
//! while the run goes on.
//!
//! The first user is the virtual lab: a guest finds its order and its [`BoardSetup`] in its
//! initramfs. Nothing here knows what carries the bytes.

mod frames;
mod message;
mod order;
mod setup;

pub use frames::{ChannelError, Decoder, encode};
pub use message::{Event, Message};
pub use order::{Order, VirtualBoard};
pub use setup::{BoardSetup, MODULES_PATH, ModuleFile, ORDER_PATH, SETUP_PATH};
