//! Round trips between two processes: a message that the other one sends back.

use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::partner::Partner;

use super::exchange::Exchange;
use super::joined::{End, Pipes, pair};
use crate::registry::Values;
use crate::registry::cost::{Column, CostEntry, Method, PEER, peer_cpus};

pub(super) const PIPE: CostEntry = CostEntry {
    name: "lat.pipe",
    summary: "a byte through a pipe to another process, and one back through another pipe",
    help: "Writes a byte into a pipe; a process that waits for it writes it into a second pipe, \
           from which it is read: two writes, two reads and two context switches. Comparable to \
           the pipe latency in LMbench's summary if both run on one CPU (peer=same), or with \
           peer=any if it was not bound.",
    columns: &[Column { name: "pipe", params: &[] }],
    open: open::<Pipes, 1>,
    ..ROUND_TRIP
};

pub(super) const UNIX: CostEntry = CostEntry {
    name: "lat.unix",
    summary: "a byte to another process and back through a pair of AF_UNIX stream sockets",
    help: "Sends a byte through a connected pair of AF_UNIX stream sockets (socketpair) to a \
           process that sends it back. Comparable to the AF UNIX latency in LMbench's summary.",
    columns: &[Column { name: "AF_UNIX", params: &[] }],
    open: open::<UnixStream, 1>,
    ..ROUND_TRIP
};

pub(super) const TCP: CostEntry = CostEntry {
    name: "lat.tcp",
    summary: "a byte to another process and back through a TCP connection on 127.0.0.1",
    help: "Sends a byte through a TCP connection on the loopback device to a process that sends \
           it back; both ends send at once (TCP_NODELAY). Comparable to the TCP latency in \
           LMbench's summary.",
    columns: &[Column { name: "TCP", params: &[] }],
    open: open::<TcpStream, 1>,
    ..ROUND_TRIP
};

pub(super) const UDP: CostEntry = CostEntry {
    name: "lat.udp",
    summary: "4 bytes to another process and back as UDP packets on 127.0.0.1",
    help: "Sends a packet of 4 bytes over the loopback device to a process that sends it back. Both \
           sockets are connected, so they accept nothing from others; a packet that is lost ends \
           the metric with an error after 5 s. That limit is a timer of the kernel, set up and \
           taken down within the time of each receive that waits; TCP needs none. Comparable to the UDP latency in LMbench's summary.",
    meaning: "4 bytes there and back, the empty loop subtracted",
    columns: &[Column { name: "UDP", params: &[] }],
    open: open::<UdpSocket, 4>,
    ..ROUND_TRIP
};

/// What they have in common.
const ROUND_TRIP: CostEntry = CostEntry {
    name: "",
    summary: "",
    help: "",
    meaning: "a byte there and back, the empty loop subtracted",
    params: &[PEER],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::Communication,
    columns: &[],
    open: open::<Pipes, 1>,
};

fn open<E: End + 'static, const BYTES: usize>(values: &Values) -> io::Result<Method> {
    Ok(Method::Timed(Box::new(RoundTrip::<E, BYTES>::new(values)?)))
}

/// Messages of `BYTES` bytes, each with the number of its round.
struct RoundTrip<E, const BYTES: usize> {
    here: E,
    round: u32,
    partner: Partner,
}

impl<E: End, const BYTES: usize> RoundTrip<E, BYTES> {
    fn new(values: &Values) -> io::Result<Self> {
        Self::with(values, |message| message)
    }

    /// With a process that answers as `answer` says.
    fn with(values: &Values, answer: fn([u8; BYTES]) -> [u8; BYTES]) -> io::Result<Self> {
        let (here, there) = pair::<E>()?;
        let body = || answer_all(&there, answer);
        let partner = Partner::fork(&there.fds(), &peer_cpus(values)?, body)?;
        Ok(Self { here, round: 0, partner })
    }
}

/// The life of the other process, until there is nothing more to answer.
fn answer_all<E: End, const BYTES: usize>(
    there: &E,
    answer: fn([u8; BYTES]) -> [u8; BYTES],
) -> io::Result<()> {
    let mut message = [0; BYTES];
    loop {
        match there.receive(&mut message) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            received => received?,
        }
        there.send(&answer(message))?;
    }
}

impl<E: End, const BYTES: usize> Exchange for RoundTrip<E, BYTES> {
    const THROUGH: &'static str = E::NAME;
    const OTHER: &'static str = "answers";

    fn once(&mut self) -> io::Result<()> {
        self.round = self.round.wrapping_add(1);
        let number = self.round.to_ne_bytes();
        let sent: [u8; BYTES] = std::array::from_fn(|at| number[at]);
        self.here.send(&sent)?;
        let mut received = [0; BYTES];
        self.here.receive(&mut received)?;
        if received == sent { Ok(()) } else { Err(io::Error::other("another message came back")) }
    }

    fn partner(&self) -> &Partner {
        &self.partner
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{gone, nanoseconds, timed, values};
    use super::*;
    use crate::costs::{COSTS, find};
    use crate::registry::cost::Operation as _;

    fn entries() -> impl Iterator<Item = &'static CostEntry> {
        COSTS
            .iter()
            .filter(|entry| ["lat.pipe", "lat.unix", "lat.tcp", "lat.udp"].contains(&entry.name))
    }

    #[test]
    fn each_goes_to_another_process_and_back_and_leaves_nothing() {
        assert_eq!(entries().count(), 4);
        for entry in entries() {
            for peer in ["same", "any"] {
                let mut operation = timed(entry, &[("peer", peer)]);
                operation.run(1000).unwrap();
                let [peer] = &operation.peers()[..] else { panic!("one other process") };
                let (id, stat) = (peer.id, format!("/proc/{}/stat", peer.id));
                assert!(std::fs::exists(&stat).unwrap(), "{}", entry.name);
                drop(operation);
                assert!(gone(id), "{}", entry.name);
            }
        }
    }

    #[test]
    fn a_round_trip_through_a_pipe_is_at_least_four_calls() {
        let mut calls = timed(find("lat.syscall").unwrap(), &[]);
        let mut trips = timed(&PIPE, &[]);
        let (call, trip) = (nanoseconds(&mut *calls, 20_000), nanoseconds(&mut *trips, 2000));
        assert!(trip >= 4.0 * call, "{trip} ns of four calls of {call} ns");
    }

    #[test]
    fn another_answer_is_an_error_and_so_is_the_end_of_the_other_process() {
        let wrong = |[byte]: [u8; 1]| [byte ^ 1];
        let mut operation = RoundTrip::<Pipes, 1>::with(&values(&PIPE, &[]), wrong).unwrap();
        let said = operation.run(1).unwrap_err().to_string();
        assert_eq!(said, "pipe: another message came back");
        // A packet that nobody fetched is not answered by anything: that takes the limit of 5 s.
        for entry in entries().filter(|entry| entry.name != "lat.udp") {
            let mut operation = timed(entry, &[]);
            operation.run(1).unwrap();
            punctual_sys::process::kill(operation.peers()[0].id).unwrap();
            let said = operation.run(1 << 40).unwrap_err().to_string();
            assert_eq!(said, "the other process killed by SIGKILL");
        }
    }
}
