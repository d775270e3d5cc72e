//! Sockets that std lacks.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
/// Option of a raw ICMP socket: a mask of the types to drop (linux/icmp.h).
const ICMP_FILTER: libc::c_int = 1;
const HEADER: usize = 8;
/// Longest payload of an echo, bytes.
pub const ECHO_PAYLOAD_MAX: usize = 1024;

/// An ICMP echo socket that reaches only 127.0.0.1: it takes no address, so callers cannot
/// send anywhere else.
#[derive(Debug)]
pub struct LoopbackEcho {
    socket: OwnedFd,
    /// Identifier of a raw socket's echoes; for a ping socket the kernel sets it.
    raw_id: Option<u16>,
}

impl LoopbackEcho {
    /// Opens a ping socket, or a raw one if the group may not ping
    /// (`net.ipv4.ping_group_range`). Reads wait for at most `timeout`.
    ///
    /// # Errors
    /// Those of socket(2): `EACCES` or `EPERM` if neither kind is permitted.
    pub fn open(timeout: Duration) -> io::Result<Self> {
        let (socket, raw) = match socket(libc::SOCK_DGRAM) {
            Ok(socket) => (socket, false),
            Err(_) => (socket(libc::SOCK_RAW)?, true),
        };
        if raw {
            let drop_all_but_replies = !(1_u32 << ECHO_REPLY);
            option(&socket, libc::SOL_RAW, ICMP_FILTER, &drop_all_but_replies)?;
        }
        let limit = libc::timeval {
            tv_sec: timeout.as_secs().try_into().map_err(io::Error::other)?,
            tv_usec: timeout.subsec_micros().into(),
        };
        option(&socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &limit)?;
        connect_loopback(&socket)?;
        let id = u16::try_from(std::process::id() & 0xffff).map_err(io::Error::other)?;
        let raw_id = raw.then_some(id);
        Ok(Self { socket, raw_id })
    }

    /// Sends one echo request with `payload` (at most [`ECHO_PAYLOAD_MAX`] bytes).
    ///
    /// # Errors
    /// Those of send(2).
    pub fn request(&self, sequence: u16, payload: &[u8]) -> io::Result<()> {
        if payload.len() > ECHO_PAYLOAD_MAX {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let mut packet = [0_u8; HEADER + ECHO_PAYLOAD_MAX];
        packet[0] = ECHO_REQUEST;
        packet[4..6].copy_from_slice(&self.raw_id.unwrap_or(0).to_be_bytes());
        packet[6..8].copy_from_slice(&sequence.to_be_bytes());
        packet[HEADER..HEADER + payload.len()].copy_from_slice(payload);
        let packet = &mut packet[..HEADER + payload.len()];
        let sum = checksum(packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        // SAFETY: the packet is valid for its length.
        let sent =
            unsafe { libc::send(self.socket.as_raw_fd(), packet.as_ptr().cast(), packet.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Waits for one of our replies and returns its sequence number.
    ///
    /// # Errors
    /// `WouldBlock` on timeout; otherwise those of recv(2).
    pub fn reply(&self) -> io::Result<u16> {
        let mut packet = [0_u8; 60 + HEADER + ECHO_PAYLOAD_MAX];
        loop {
            // SAFETY: the buffer is valid for its length.
            let received = unsafe {
                libc::recv(self.socket.as_raw_fd(), packet.as_mut_ptr().cast(), packet.len(), 0)
            };
            let Ok(length) = usize::try_from(received) else {
                return Err(io::Error::last_os_error());
            };
            if let Some(sequence) = parse_reply(&packet[..length], self.raw_id) {
                return Ok(sequence);
            }
        }
    }
}

/// Has a connection end at once when it is closed, by a reset and without TIME_WAIT (SO_LINGER of
/// 0 s).
///
/// # Errors
/// Those of setsockopt(2).
pub fn reset_at_close(stream: &TcpStream) -> io::Result<()> {
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    option(stream, libc::SOL_SOCKET, libc::SO_LINGER, &at_once)
}

/// The sequence number of an echo reply to us. A raw socket also delivers the IP header and
/// the replies to other programs.
fn parse_reply(packet: &[u8], raw_id: Option<u16>) -> Option<u16> {
    let icmp = match raw_id {
        Some(_) => packet.get(usize::from(packet.first()? & 0x0f) * 4..)?,
        None => packet,
    };
    let header: &[u8; HEADER] = icmp.first_chunk()?;
    let id = u16::from_be_bytes([header[4], header[5]]);
    let ours = header[0] == ECHO_REPLY && raw_id.is_none_or(|raw| raw == id);
    ours.then(|| u16::from_be_bytes([header[6], header[7]]))
}

/// The Internet checksum (RFC 1071).
fn checksum(packet: &[u8]) -> u16 {
    let mut sum: u32 = packet
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).map_or(0, |sum| !sum)
}

fn socket(kind: libc::c_int) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC;
    // SAFETY: plain numbers; the descriptor is checked and owned by nothing else.
    unsafe {
        let fd = libc::socket(libc::AF_INET, kind, libc::IPPROTO_ICMP);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn option<T>(
    socket: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let size = libc::socklen_t::try_from(size_of::<T>()).map_err(io::Error::other)?;
    // SAFETY: the value is valid for its size.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), size)
    };
    if set < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn connect_loopback(socket: &OwnedFd) -> io::Result<()> {
    let size = size_of::<libc::sockaddr_in>();
    let size = libc::socklen_t::try_from(size).map_err(io::Error::other)?;
    let family = libc::sa_family_t::try_from(libc::AF_INET).map_err(io::Error::other)?;
    // SAFETY: a zeroed address is valid; it is complete when passed.
    let connected = unsafe {
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        address.sin_family = family;
        address.sin_addr.s_addr = libc::INADDR_LOOPBACK.to_be();
        libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size)
    };
    if connected < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        // The example of its section 3, and its complement.
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&data), !0xddf2);
        assert_eq!(checksum(&[0xff]), !0xff00);
    }

    #[test]
    fn only_our_replies_are_taken() {
        let reply = [0, 0, 0, 0, 0x12, 0x34, 0, 7, 1, 2];
        assert_eq!(parse_reply(&reply, None), Some(7));
        assert_eq!(parse_reply(&reply[..7], None), None);
        let mut raw = vec![0x45; 20];
        raw.extend(reply);
        assert_eq!(parse_reply(&raw, Some(0x1234)), Some(7));
        assert_eq!(parse_reply(&raw, Some(0x1235)), None);
        raw[20] = ECHO_REQUEST;
        assert_eq!(parse_reply(&raw, Some(0x1234)), None);
        assert_eq!(parse_reply(&[], Some(1)), None);
    }
}
