//! Round trips of remote procedure calls on one machine.

use std::io::{self, Read};
use std::net::{TcpStream, UdpSocket};

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::partner::Partner;

use super::exchange::Exchange;
use super::joined::{End, packet, pair};
use crate::registry::cost::{Column, CostEntry, Method, PEER, peer_cpus};
use crate::registry::{Choice, Default, Kind, Param, Values};
use inbox::Inbox;
use message::Message;

mod inbox;
mod message;

pub(super) const RPC: CostEntry = CostEntry {
    name: "lat.rpc",
    summary: "a remote procedure call to a process on 127.0.0.1 (ONC RPC over UDP or TCP)",
    help: "Calls a procedure of another process that does nothing and returns its argument, an XDR \
           unsigned int: ONC RPC version 2 (RFC 5531) with AUTH_NONE, over connected UDP sockets or, \
           with record marks, over a TCP connection (TCP_NODELAY) on the loopback device. Client and \
           server are punctual's own and small; no portmapper is asked. LMbench's RPC latencies go \
           through the RPC library of the system, and contain what that costs: compare lat.rpc with \
           lat.udp and lat.tcp of the same kernel to see what the protocol adds. As in lat.udp, UDP \
           waits for a reply with a limit of 5 s, a timer of the kernel that is within the time.",
    meaning: "a call and its reply, the empty loop subtracted",
    params: &[
        Param {
            name: "over",
            kind: Kind::Choice(&[Choice::of("udp", ""), Choice::of("tcp", "")]),
            default: Default::Value("udp"),
            help: "what carries the messages",
        },
        PEER,
    ],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::Communication,
    columns: &[
        Column { name: "RPC/UDP", params: &[] },
        Column { name: "RPC/TCP", params: &[("over", "tcp")] },
    ],
    open: |values| {
        Ok(Method::Timed(match values.text("over") {
            "tcp" => Box::new(Client::<TcpStream>::new(values)?),
            _ => Box::new(Client::<UdpSocket>::new(values)?),
        }))
    },
};

/// What carries messages whole.
trait RpcEnd: End {
    fn put(&self, message: &mut Message) -> io::Result<()>;

    /// Reads the next message, with one call if it is there whole.
    fn take<'a>(&self, inbox: &'a mut Inbox) -> io::Result<&'a [u8]>;
}

impl RpcEnd for UdpSocket {
    fn put(&self, message: &mut Message) -> io::Result<()> {
        UdpSocket::send(self, message.packet()).map(drop)
    }

    fn take<'a>(&self, inbox: &'a mut Inbox) -> io::Result<&'a [u8]> {
        inbox.packet(|bytes| packet(self, bytes))
    }
}

impl RpcEnd for TcpStream {
    fn put(&self, message: &mut Message) -> io::Result<()> {
        End::send(self, message.record())
    }

    fn take<'a>(&self, inbox: &'a mut Inbox) -> io::Result<&'a [u8]> {
        inbox.record(|bytes| (&mut &*self).read(bytes))
    }
}

struct Client<C> {
    here: C,
    inbox: Inbox,
    xid: u32,
    partner: Partner,
}

impl<C: RpcEnd> Client<C> {
    fn new(values: &Values) -> io::Result<Self> {
        let (here, there) = pair::<C>()?;
        let partner = Partner::fork(&there.fds(), &peer_cpus(values)?, || serve(&there))?;
        Ok(Self { here, inbox: Inbox::new(), xid: 0, partner })
    }
}

/// The life of the other process, until nobody calls any more.
fn serve<C: RpcEnd>(there: &C) -> io::Result<()> {
    let mut inbox = Inbox::new();
    loop {
        let call = match there.take(&mut inbox) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            call => call?,
        };
        there.put(&mut message::reply(call)?)?;
    }
}

impl<C: RpcEnd> Exchange for Client<C> {
    const THROUGH: &'static str = C::NAME;
    const OTHER: &'static str = "serves";

    fn once(&mut self) -> io::Result<()> {
        self.xid = self.xid.wrapping_add(1);
        // Not the number of the call, so that an echo of the header would be no result.
        let argument = !self.xid;
        self.here.put(&mut message::call(self.xid, argument))?;
        let reply = self.here.take(&mut self.inbox)?;
        match message::result(reply, self.xid)? {
            result if result == argument => Ok(()),
            _ => Err(io::Error::other("another result came back")),
        }
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
    fn calls_are_answered_and_nothing_is_left() {
        for over in ["udp", "tcp"] {
            let mut operation = timed(&RPC, &[("over", over)]);
            operation.run(1000).unwrap();
            let id = operation.peers()[0].id;
            drop(operation);
            assert!(gone(id), "{over}");
        }
    }

    #[test]
    fn a_reply_to_another_call_is_an_error_and_so_is_the_end_of_the_server() {
        let mut client = Client::<TcpStream>::new(&values(&RPC, &[])).unwrap();
        client.here.put(&mut message::call(99, 1)).unwrap();
        let said = client.run(1).unwrap_err().to_string();
        assert_eq!(said, "TCP on 127.0.0.1: no reply to this call");
        punctual_sys::process::kill(client.partner.pid()).unwrap();
        // The reply to its call may have come before.
        while RpcEnd::take(&client.here, &mut client.inbox).is_ok() {}
        let said = client.run(1).unwrap_err().to_string();
        assert_eq!(said, "the other process killed by SIGKILL");
    }
}
