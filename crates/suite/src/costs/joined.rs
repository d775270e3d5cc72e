//! What joins two processes of one machine: pipes, socket pairs, and sockets of the loopback
//! device, which are bound to 127.0.0.1 alone.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use punctual_sys::error;

/// Nothing on one machine takes as long; whatever does has been lost.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// Connections of others that are turned away before a listener gives up.
const STRANGERS_MAX: usize = 16;

/// One end of what joins two processes.
pub(super) trait End: Sized {
    /// What it is called in errors.
    const NAME: &'static str;

    /// Both ends.
    fn pair() -> io::Result<(Self, Self)>;

    fn fds(&self) -> Vec<BorrowedFd<'_>>;

    fn send(&self, message: &[u8]) -> io::Result<()>;

    /// Fills `message`. `UnexpectedEof` if the other end is gone.
    fn receive(&self, message: &mut [u8]) -> io::Result<()>;
}

/// Both ends, or an error that says of what.
pub(super) fn pair<E: End>() -> io::Result<(E, E)> {
    E::pair().map_err(|error| in_words(E::NAME, &error))
}

/// An error that says of what it is. What came too late is `TimedOut`: in `WouldBlock` the engine
/// sees a fork that was refused.
pub(super) fn in_words(what: &str, error: &io::Error) -> io::Error {
    // What SO_RCVTIMEO makes of a read; in the words of another error it is something else.
    let late = error.kind() == io::ErrorKind::WouldBlock && error.raw_os_error().is_some();
    let (kind, why) = match late {
        true => (io::ErrorKind::TimedOut, format!("nothing came for {} s", LIMIT.as_secs())),
        false => (error::kind(error), error::text(error)),
    };
    io::Error::new(kind, format!("{what}: {why}"))
}

/// Two pipes, one each way.
pub(super) struct Pipes {
    from: PipeReader,
    to: PipeWriter,
}

impl End for Pipes {
    const NAME: &'static str = "pipe";

    fn pair() -> io::Result<(Self, Self)> {
        let ((here, to_here), (there, to_there)) = (io::pipe()?, io::pipe()?);
        Ok((Self { from: here, to: to_there }, Self { from: there, to: to_here }))
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.from.as_fd(), self.to.as_fd()]
    }

    fn send(&self, message: &[u8]) -> io::Result<()> {
        (&self.to).write_all(message)
    }

    fn receive(&self, message: &mut [u8]) -> io::Result<()> {
        (&self.from).read_exact(message)
    }
}

impl End for UnixStream {
    const NAME: &'static str = "AF_UNIX";

    fn pair() -> io::Result<(Self, Self)> {
        UnixStream::pair()
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.as_fd()]
    }

    fn send(&self, message: &[u8]) -> io::Result<()> {
        (&mut &*self).write_all(message)
    }

    fn receive(&self, message: &mut [u8]) -> io::Result<()> {
        (&mut &*self).read_exact(message)
    }
}

impl End for TcpStream {
    const NAME: &'static str = "TCP on 127.0.0.1";

    fn pair() -> io::Result<(Self, Self)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let here = TcpStream::connect_timeout(&listener.local_addr()?, LIMIT)?;
        let there = accept(&listener, here.local_addr()?)?;
        for end in [&here, &there] {
            end.set_nodelay(true)?;
        }
        for (from, to) in [(&here, &there), (&there, &here)] {
            carry_one(from, to)?;
        }
        Ok((here, there))
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.as_fd()]
    }

    fn send(&self, message: &[u8]) -> io::Result<()> {
        (&mut &*self).write_all(message)
    }

    fn receive(&self, message: &mut [u8]) -> io::Result<()> {
        (&mut &*self).read_exact(message)
    }
}

impl End for UdpSocket {
    const NAME: &'static str = "UDP on 127.0.0.1";

    fn pair() -> io::Result<(Self, Self)> {
        let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let (here, there) = (bind()?, bind()?);
        // Connected to each other, they neither send nor receive anything else.
        here.connect(there.local_addr()?)?;
        there.connect(here.local_addr()?)?;
        // Nothing else tells that a packet was lost.
        here.set_read_timeout(Some(LIMIT))?;
        Ok((here, there))
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.as_fd()]
    }

    fn send(&self, message: &[u8]) -> io::Result<()> {
        UdpSocket::send(self, message).map(drop)
    }

    fn receive(&self, message: &mut [u8]) -> io::Result<()> {
        match packet(self, message)? {
            length if length == message.len() => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a packet was cut short")),
        }
    }
}

/// Fails after [`LIMIT`] where the loopback device is filtered. Only here: a limit sets up a timer
/// of the kernel in each receive that waits, and an end that is gone is seen without.
fn carry_one(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    to.set_read_timeout(Some(LIMIT))?;
    End::send(from, &[0])?;
    to.receive(&mut [0])?;
    to.set_read_timeout(None)
}

/// Receives a packet; its length in bytes. A socket with a limit is interrupted by being stopped
/// and continued, whatever the handlers of signals say.
pub(super) fn packet(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.recv(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            received => return received,
        }
    }
}

/// The connection that comes from this address.
fn accept(listener: &TcpListener, from: SocketAddr) -> io::Result<TcpStream> {
    for _ in 0..STRANGERS_MAX {
        let (accepted, address) = listener.accept()?;
        if address == from {
            return Ok(accepted);
        }
    }
    Err(io::Error::other("others connect to its port"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carries<E: End>() {
        let (here, there) = pair::<E>().unwrap();
        here.send(&[1, 2]).unwrap();
        there.send(&[3]).unwrap();
        let (mut two, mut one) = ([0; 2], [0]);
        there.receive(&mut two).unwrap();
        here.receive(&mut one).unwrap();
        assert_eq!((two, one), ([1, 2], [3]), "{}", E::NAME);
        assert!(!here.fds().is_empty());
        drop(there);
        let ended = here.send(&[1]).and_then(|()| here.receive(&mut one));
        assert!(ended.is_err(), "{}: the other end is gone", E::NAME);
    }

    #[test]
    fn each_carries_messages_both_ways_and_ends_with_the_other_end() {
        carries::<Pipes>();
        carries::<UnixStream>();
        carries::<TcpStream>();
        carries::<UdpSocket>();
    }

    #[test]
    fn a_connection_of_another_is_turned_away() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (stranger, own) =
            (TcpStream::connect(address).unwrap(), TcpStream::connect(address).unwrap());
        let accepted = accept(&listener, own.local_addr().unwrap()).unwrap();
        assert_eq!(accepted.peer_addr().unwrap(), own.local_addr().unwrap());
        drop(stranger);
    }

    #[test]
    fn what_was_lost_is_told_in_words() {
        let (here, _there) = pair::<UdpSocket>().unwrap();
        here.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let error = in_words("UDP", &here.receive(&mut [0]).unwrap_err());
        assert_eq!(error.to_string(), "UDP: nothing came for 5 s");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let full = io::Error::new(io::ErrorKind::WouldBlock, "fork: no more processes");
        let full = in_words("a", &full);
        assert_eq!(full.to_string(), "a: fork: no more processes");
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn only_udp_keeps_its_limit() {
        let (here, there) = pair::<TcpStream>().unwrap();
        for end in [&here, &there] {
            assert_eq!(end.read_timeout().unwrap(), None);
            end.set_nonblocking(true).unwrap();
            let nothing = (&mut &*end).read(&mut [0]).unwrap_err();
            assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock, "the first exchange is left");
        }
        let (here, _there) = pair::<UdpSocket>().unwrap();
        assert_eq!(here.read_timeout().unwrap(), Some(LIMIT));
    }
}
