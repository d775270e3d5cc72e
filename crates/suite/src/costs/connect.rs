//! Connections over the loopback device: made and closed.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::partner::Partner;
use punctual_sys::socket::reset_at_close;

use super::exchange::Exchange;
use super::joined::{LIMIT, in_words};
use crate::registry::Values;
use crate::registry::cost::{Column, CostEntry, Method, PEER, peer_cpus};

/// Connections after which the other side must have accepted as many, unless the queue of a
/// listener (net.core.somaxconn, 128 or more) was made shorter: one that does not fit is tried
/// again after a second.
const BATCH: u64 = 64;
const NAME: &str = "connection to 127.0.0.1";

pub(super) const CONNECT: CostEntry = CostEntry {
    name: "lat.connect",
    summary: "a TCP connection to a process on 127.0.0.1, made and closed",
    help: "Makes a socket, connects it over the loopback device to a process that accepts and \
           closes it, and closes it by a reset (SO_LINGER of 0 s). A reset leaves no TIME_WAIT, of \
           which orderly ends leave one each for a minute, until there are no ports left; it also \
           takes less than the exchange of FINs that LMbench times in its TCP connect, so this is \
           a lower bound of that. The other process has accepted all but the last 63 connections \
           within the time.",
    meaning: "socket, setsockopt, connect and close, the empty loop subtracted",
    params: &[PEER],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::Communication,
    columns: &[Column { name: "TCP conn", params: &[] }],
    open: |values| Ok(Method::Timed(Box::new(Connect::new(values)?))),
};

struct Connect {
    address: SocketAddr,
    accepted: PipeReader,
    batch: u64,
    /// Connections that were made.
    made: u64,
    partner: Partner,
}

impl Connect {
    fn new(values: &Values) -> io::Result<Self> {
        let failed = |error: io::Error| in_words(NAME, &error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (accepted, tell) = io::pipe().map_err(|error| in_words("pipe", &error))?;
        let kept = [listener.as_fd(), tell.as_fd()];
        let batch = batch();
        let body = || accept_all(&listener, &tell, batch);
        let partner = Partner::fork(&kept, &peer_cpus(values)?, body)?;
        drop((listener, tell));
        // Whoever filters the loopback device makes this one wait, and no later one.
        let first = TcpStream::connect_timeout(&address, LIMIT).map_err(failed)?;
        reset_at_close(&first).map_err(failed)?;
        Ok(Self { address, accepted, batch, made: 1, partner })
    }
}

fn batch() -> u64 {
    let queue = std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok();
    let queue = queue.and_then(|text| text.trim().parse::<u64>().ok());
    queue.map_or(BATCH, |queue| BATCH.min(queue / 2)).max(1)
}

/// The life of the other process: tells when it has accepted another batch.
fn accept_all(listener: &TcpListener, mut tell: &PipeWriter, batch: u64) -> io::Result<()> {
    let mut count = 0_u64;
    loop {
        match listener.accept() {
            // It was closed before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            accepted => drop(accepted?),
        }
        count += 1;
        if count.is_multiple_of(batch) {
            tell.write_all(&[0])?;
        }
    }
}

impl Exchange for Connect {
    const THROUGH: &'static str = NAME;
    const OTHER: &'static str = "accepts";

    fn once(&mut self) -> io::Result<()> {
        let stream = TcpStream::connect(self.address)?;
        reset_at_close(&stream)?;
        drop(stream);
        self.made += 1;
        if self.made.is_multiple_of(self.batch) {
            self.accepted.read_exact(&mut [0])?;
        }
        Ok(())
    }

    fn partner(&self) -> &Partner {
        &self.partner
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{gone, timed, values};
    use super::*;
    use crate::registry::cost::Operation as _;

    #[test]
    fn connections_by_the_thousand_leave_no_time_wait() {
        let mut connect = Connect::new(&values(&CONNECT, &[])).unwrap();
        connect.run(3000).unwrap();
        assert_eq!(connect.made, 3001);
        let port = format!(":{:04X} ", connect.address.port());
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
        // The fourth column is the state; 06 is TIME_WAIT.
        let waiting = sockets
            .lines()
            .filter(|line| line.contains(&port) && line.split_whitespace().nth(3) == Some("06"));
        assert_eq!(waiting.count(), 0);
    }

    #[test]
    fn the_process_that_accepts_ends_with_it_and_its_end_is_told() {
        let mut operation = timed(&CONNECT, &[("peer", "any")]);
        operation.run(10).unwrap();
        let id = operation.peers()[0].id;
        punctual_sys::process::kill(id).unwrap();
        let said = operation.run(1 << 30).unwrap_err().to_string();
        assert_eq!(said, "the other process killed by SIGKILL");
        drop(operation);
        assert!(gone(id));
    }
}
