//! A packet flood over the loopback device, and over nothing else.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use punctual_sys::error;
use punctual_sys::socket::LoopbackEcho;

use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Owns, PartForm, nothing_to_resolve};
use crate::registry::need::ICMP_SOCKET;
use crate::registry::{Choice, Default, Kind, Param};

const PAYLOAD: [u8; 10] = [0x5a; 10];
const OUTSTANDING: u32 = 100;
/// A flood ping sends at least 100 packets a second, whatever comes back.
const REPLY_LIMIT: Duration = Duration::from_millis(10);
const PACKETS: usize = 0;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "flood",
    summary: "echo flood on the loopback device, 100 packets outstanding",
    help: "Sends 10-byte echo requests to 127.0.0.1 and keeps 100 of them outstanding, as ping \
           -l 100 -q -s 10 -f localhost does; it counts the replies. The UDP and TCP forms send \
           to a process that returns every packet. No other address can be chosen.",
    main_param: "proto",
    params: &[Param {
        name: "proto",
        kind: Kind::Choice(&[
            Choice { value: "icmp", help: "", needs: &[ICMP_SOCKET] },
            Choice::of("udp", ""),
            Choice::of("tcp", ""),
        ]),
        default: Default::Value("icmp"),
        help: "protocol",
    }],
    counters: &["packets"],
    needs: &[],
    form: Form::Part(PartForm {
        resolve: nothing_to_resolve,
        owns: Owns::Nothing,
        steady_from: None,
        run,
    }),
};

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    match worker.values().text("proto") {
        "udp" => udp(worker),
        "tcp" => tcp(worker),
        _ => icmp(worker),
    }
}

/// A socket that sends packets and gets them back.
trait Echo {
    fn send(&mut self, number: u16) -> io::Result<()>;
    fn receive(&mut self) -> io::Result<()>;
}

/// Keeps [`OUTSTANDING`] packets in flight for ever.
fn flood(worker: &Worker<'_>, echo: &mut impl Echo) -> Result<Infallible, LoadError> {
    let mut outstanding = 0;
    let mut number = 0_u16;
    loop {
        while outstanding < OUTSTANDING {
            match echo.send(number) {
                Ok(()) => {}
                // The buffers are full: read replies first.
                Err(error) if is_full(&error) && outstanding > 0 => break,
                Err(error) => return Err(LoadError::io("send to 127.0.0.1", &error)),
            }
            outstanding += 1;
            number = number.wrapping_add(1);
        }
        match echo.receive() {
            Ok(()) => {
                worker.add(PACKETS, 1);
                outstanding -= 1;
            }
            // Counts one packet as lost, so that the next is sent.
            Err(error) if is_full(&error) => outstanding -= 1,
            Err(error) => return Err(LoadError::io("receive from 127.0.0.1", &error)),
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    // ENOBUFS has no `ErrorKind`.
    const ENOBUFS: i32 = 105;
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
        || error.raw_os_error() == Some(ENOBUFS)
}

impl Echo for LoopbackEcho {
    fn send(&mut self, number: u16) -> io::Result<()> {
        self.request(number, &PAYLOAD)
    }

    fn receive(&mut self) -> io::Result<()> {
        self.reply().map(|_| ())
    }
}

fn icmp(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let mut echo = LoopbackEcho::open(REPLY_LIMIT).map_err(|error| {
        let need = ICMP_SOCKET.what;
        LoadError::CannotStart(format!("ICMP socket: {}; it needs {need}", error::text(&error)))
    })?;
    flood(worker, &mut echo)
}

impl Echo for UdpSocket {
    fn send(&mut self, _: u16) -> io::Result<()> {
        UdpSocket::send(self, &PAYLOAD).map(|_| ())
    }

    fn receive(&mut self) -> io::Result<()> {
        self.recv(&mut [0; PAYLOAD.len()]).map(|_| ())
    }
}

fn udp(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let failed = |error| LoadError::io("UDP on 127.0.0.1", &error);
    let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed);
    let (mut here, there) = (bind()?, bind()?);
    // Connected to each other, the sockets neither send nor receive anything else.
    here.connect(there.local_addr().map_err(failed)?).map_err(failed)?;
    there.connect(here.local_addr().map_err(failed)?).map_err(failed)?;
    here.set_read_timeout(Some(REPLY_LIMIT)).map_err(failed)?;
    worker.fork(|_| {
        let mut packet = [0; PAYLOAD.len()];
        loop {
            let length = there.recv(&mut packet).map_err(failed)?;
            match there.send(&packet[..length]) {
                Err(error) if !is_full(&error) => return Err(failed(error)),
                _ => {}
            }
        }
    })?;
    flood(worker, &mut here)
}

impl Echo for TcpStream {
    fn send(&mut self, _: u16) -> io::Result<()> {
        self.write_all(&PAYLOAD)
    }

    fn receive(&mut self) -> io::Result<()> {
        self.read_exact(&mut [0; PAYLOAD.len()])
    }
}

fn tcp(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let failed = |error| LoadError::io("TCP on 127.0.0.1", &error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let mut here = TcpStream::connect(address).map_err(failed)?;
    let (mut there, _) = listener.accept().map_err(failed)?;
    // One packet at a time, as in the other forms. A stream loses nothing, so replies need no
    // time limit.
    for end in [&here, &there] {
        end.set_nodelay(true).map_err(failed)?;
    }
    worker.fork(|_| {
        let mut packet = [0; PAYLOAD.len()];
        loop {
            there.read_exact(&mut packet).map_err(failed)?;
            there.write_all(&packet).map_err(failed)?;
        }
    })?;
    flood(worker, &mut here)
}
