//! Sockets that std has not.
