//! A process of one thread that does what it is ordered to, for operations that behave differently
//! in a process with threads: descriptors are counted there, signals go to any thread, and all
//! memory may be locked.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::error::{called, in_call, kind, text};
use crate::process::{
    PANICKED, Pid, die_with_parent, kill, leave_terminal, try_wait, unblock_signals, wait,
};
use crate::{fd, thread};

/// What an agent is for.
pub trait Work {
    /// Carries out an order, whose meaning and whose result only the two sides know.
    ///
    /// # Errors
    /// Any; its text reaches the one who ordered it.
    fn carry_out(&mut self, order: u8, count: u64) -> io::Result<u64>;
}

/// When an agent ends without being told to, because its creator is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// At once: it is killed.
    AtOnce,
    /// After the order that it is carrying out; its [`Work`] is then dropped, and clears away what
    /// it has made.
    AfterOrder,
}

/// Tells an agent to end. Its descriptor is not enough: other children may have copies of it.
const LEAVE: u8 = u8::MAX;
/// How long an agent may take to end before it is killed.
const PATIENCE: Duration = Duration::from_secs(5);

const ORDER: usize = 9;
const REPLY: usize = 512;
/// Of a reply: whether it is no error, the result, and the length of a text that follows.
const HEADER: usize = 11;

/// The side of the creator. Dropping it ends the agent and waits for that.
#[derive(Debug)]
pub struct Agent {
    pid: Pid,
    orders: File,
    replies: File,
    /// Reaped already.
    gone: bool,
}

impl Agent {
    /// Forks an agent, in which `make` then makes its work. It has one thread, no descriptor but
    /// the standard ones and its own, no memory that is locked, and the CPUs, policy and priority
    /// of the calling thread, with which it ends.
    ///
    /// `make` and the work may allocate: the C libraries see to that in a fork. They must take no
    /// other lock that another thread may hold now, such as that of standard output.
    ///
    /// # Errors
    /// Those of pipe2(2) and fork(2), with their names, and that of `make`.
    pub fn fork<W: Work>(end: End, make: impl FnOnce() -> io::Result<W>) -> io::Result<Self> {
        let pipe = || io::pipe().map_err(|error| in_call("pipe", &error));
        let ((to_do, orders), (replies, reply)) = (pipe()?, pipe()?);
        let ends = (OwnedFd::from(to_do), OwnedFd::from(reply));
        let parent = std::process::id();
        // SAFETY: the child calls only what was said above until it ends by _exit.
        let pid = called("fork", unsafe { libc::fork() })?;
        if pid == 0 {
            let life = || live(end, parent, ends, make);
            let code = catch_unwind(AssertUnwindSafe(life)).unwrap_or(PANICKED);
            // SAFETY: ends this process; buffers and destructors belong to the parent.
            unsafe { libc::_exit(code) }
        }
        drop(ends);
        let (orders, replies) = (OwnedFd::from(orders), OwnedFd::from(replies));
        let mut agent =
            Self { pid, orders: File::from(orders), replies: File::from(replies), gone: false };
        agent.reply()?;
        Ok(agent)
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Has it carry out an order, and returns the result.
    ///
    /// # Errors
    /// That of the order, or how the agent has ended.
    pub fn order(&mut self, order: u8, count: u64) -> io::Result<u64> {
        if self.orders.write_all(&message(order, count)).is_err() {
            return Err(self.ended());
        }
        self.reply()
    }

    fn reply(&mut self) -> io::Result<u64> {
        let mut reply = [0; REPLY];
        if self.replies.read_exact(&mut reply).is_err() {
            return Err(self.ended());
        }
        let (header, rest) = reply.split_at(HEADER);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b));
        if header[0] == 0 {
            return Ok(number(&header[1..9]));
        }
        let length = usize::from(u16::from_le_bytes([header[9], header[10]]));
        let said = String::from_utf8_lossy(rest.get(..length).unwrap_or(rest));
        let errno = i32::try_from(number(&header[1..9])).unwrap_or(0);
        let kind = kind(&io::Error::from_raw_os_error(errno));
        Err(io::Error::new(if errno == 0 { io::ErrorKind::Other } else { kind }, said.as_ref()))
    }

    /// Why there is no reply; reaps it.
    fn ended(&mut self) -> io::Error {
        const GONE: &str = "the process that is timed has ended";
        if self.gone {
            return io::Error::other(GONE);
        }
        // It may only have closed its pipes.
        let _ = kill(self.pid);
        self.gone = true;
        match wait(self.pid) {
            Ok(exit) => io::Error::other(format!("{GONE}: {exit}")),
            Err(_) => io::Error::other(GONE),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if self.gone {
            return;
        }
        let _ = self.orders.write_all(&message(LEAVE, 0));
        let from = Instant::now();
        // Nothing is sent any more: the pipe is readable when it is closed.
        let _ = fd::wait_readable([self.replies.as_fd()], PATIENCE);
        while !matches!(try_wait(self.pid), Ok(Some(_)) | Err(_)) {
            if from.elapsed() > PATIENCE {
                // It has nothing to clear away that nobody else would.
                let _ = kill(self.pid);
                let _ = wait(self.pid);
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn message(order: u8, count: u64) -> [u8; ORDER] {
    let mut message = [order; ORDER];
    message[1..].copy_from_slice(&count.to_le_bytes());
    message
}

/// The life of the agent.
fn live<W: Work>(
    end: End,
    parent: u32,
    (to_do, reply): (OwnedFd, OwnedFd),
    make: impl FnOnce() -> io::Result<W>,
) -> i32 {
    leave_terminal();
    close_all_but([to_do.as_raw_fd(), reply.as_raw_fd()]);
    let (mut to_do, mut reply) = (File::from(to_do), File::from(reply));
    thread::set_name("punctual-cost");
    let prepare = || {
        unblock_signals()?;
        if end == End::AtOnce {
            die_with_parent()?;
        }
        make()
    };
    let mut work = match prepare() {
        // The parent may have ended before the kernel was told.
        _ if std::os::unix::process::parent_id() != parent => return PANICKED,
        Ok(work) => work,
        Err(error) => return i32::from(answer(&mut reply, &Err(error)).is_err()),
    };
    let mut result = Ok(0);
    let mut message = [0; ORDER];
    while answer(&mut reply, &result).is_ok() && to_do.read_exact(&mut message).is_ok() {
        let [order, count @ ..] = message;
        if order == LEAVE {
            break;
        }
        result = work.carry_out(order, u64::from_le_bytes(count));
    }
    drop(work);
    0
}

fn answer(to: &mut File, result: &io::Result<u64>) -> io::Result<()> {
    let mut reply = [0; REPLY];
    let (code, number, said) = match result {
        Ok(number) => (0, *number, String::new()),
        Err(error) => (1, u64::from(errno(error).unsigned_abs()), text(error)),
    };
    reply[0] = code;
    reply[1..9].copy_from_slice(&number.to_le_bytes());
    let room = REPLY - HEADER;
    let said = &said.as_bytes()[..said.len().min(room)];
    let length = u16::try_from(said.len()).unwrap_or(0);
    reply[9..HEADER].copy_from_slice(&length.to_le_bytes());
    reply[HEADER..HEADER + said.len()].copy_from_slice(said);
    to.write_all(&reply)
}

/// The errno of an error, or the first that means an error of its kind; 0 if there is none.
fn errno(error: &io::Error) -> i32 {
    /// The last one, EHWPOISON (asm-generic/errno.h).
    const LAST: i32 = 133;
    let kind = error.kind();
    let of_kind = |number: &i32| io::Error::from_raw_os_error(*number).kind() == kind;
    error.raw_os_error().or_else(|| (1..=LAST).find(of_kind)).unwrap_or(0)
}

/// Closes every descriptor but the standard ones and these: others would keep pipes and locks of
/// the parent open.
fn close_all_but(mut kept: [i32; 2]) {
    kept.sort_unstable();
    let [low, high] = kept;
    for (first, last) in [(3, low - 1), (low + 1, high - 1), (high + 1, i32::MAX)] {
        if first > last {
            continue;
        }
        // SAFETY: plain numbers; nothing in this process uses what it closes.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        if closed < 0 {
            // Kernels before 5.9.
            // SAFETY: as above.
            (first..=last.min(4095)).for_each(|one| unsafe {
                libc::close(one);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Adds(u64);

    impl Work for Adds {
        fn carry_out(&mut self, order: u8, count: u64) -> io::Result<u64> {
            match order {
                0 => {
                    self.0 += count;
                    Ok(self.0)
                }
                1 => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
                2 => Ok(fs::read_dir("/proc/self/fd").map_err(io::Error::other)?.count() as u64),
                3 => Ok(fs::read_dir("/proc/self/task").map_err(io::Error::other)?.count() as u64),
                4 => {
                    kill(Pid::try_from(std::process::id()).unwrap())?;
                    Ok(0)
                }
                _ => Err(io::Error::other("x".repeat(1_000))),
            }
        }
    }

    fn is_gone(pid: Pid) -> bool {
        // A zombie has no executable.
        fs::read_link(format!("/proc/{pid}/exe")).is_err()
    }

    #[test]
    fn orders_are_carried_out_by_a_process_of_one_thread() {
        let held = [File::open("/dev/null").unwrap(), File::open("/dev/null").unwrap()];
        let mut agent = Agent::fork(End::AtOnce, || Ok(Adds(5))).unwrap();
        assert_eq!(agent.order(0, 3).unwrap(), 8);
        assert_eq!(agent.order(0, 1 << 40).unwrap(), 8 + (1 << 40));
        let full = agent.order(1, 0).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert_eq!(full.to_string(), "No space left on device");
        // The standard ones, two pipes and the folder itself.
        assert_eq!((agent.order(2, 0).unwrap(), agent.order(3, 0).unwrap()), (6, 1));
        assert!(agent.order(9, 0).unwrap_err().to_string().starts_with("xxxx"));
        let pid = agent.pid();
        drop((agent, held));
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "it is not reaped");
    }

    #[test]
    fn an_error_keeps_its_kind_on_the_way() {
        use io::ErrorKind as Kind;
        for kind in [
            Kind::PermissionDenied,
            Kind::Unsupported,
            Kind::OutOfMemory,
            Kind::StorageFull,
            Kind::QuotaExceeded,
            Kind::ReadOnlyFilesystem,
            Kind::WouldBlock,
            Kind::NotFound,
            Kind::Other,
        ] {
            let none = || Err::<Adds, _>(io::Error::new(kind, "in words"));
            let error = Agent::fork(End::AtOnce, none).unwrap_err();
            assert_eq!((error.kind(), error.to_string().as_str()), (kind, "in words"));
        }
    }

    #[test]
    fn one_that_dies_or_cannot_begin_is_an_error() {
        let mut agent = Agent::fork(End::AtOnce, || Ok(Adds(0))).unwrap();
        let died = agent.order(4, 0).unwrap_err().to_string();
        assert_eq!(died, "the process that is timed has ended: killed by SIGKILL");
        assert!(agent.order(0, 0).is_err());
        let none = Agent::fork(End::AtOnce, || Err::<Adds, _>(io::Error::other("no room")));
        assert_eq!(none.unwrap_err().to_string(), "no room");
    }

    #[test]
    fn one_whose_creator_ends_does_not_live_on() {
        struct Leaves(std::path::PathBuf);
        impl Work for Leaves {
            fn carry_out(&mut self, _: u8, _: u64) -> io::Result<u64> {
                Ok(0)
            }
        }
        impl Drop for Leaves {
            fn drop(&mut self) {
                let _ = fs::remove_file(&self.0);
            }
        }
        let file = std::env::temp_dir().join(format!("punctual-agent-{}", std::process::id()));
        for end in [End::AtOnce, End::AfterOrder] {
            fs::write(&file, "").unwrap();
            let made = file.clone();
            let pid = std::thread::spawn(move || {
                let agent = Agent::fork(end, || Ok(Leaves(made))).unwrap();
                let pid = agent.pid();
                // As if this process were killed: nobody says anything, pipes are closed.
                let mut agent = std::mem::ManuallyDrop::new(agent);
                let none = File::open("/dev/null").unwrap();
                drop(std::mem::replace(&mut agent.orders, none));
                pid
            });
            let pid = pid.join().unwrap();
            let from = Instant::now();
            while !is_gone(pid) && from.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(is_gone(pid), "{end:?}");
            wait(pid).unwrap();
        }
        assert!(!file.exists(), "it did not clear away what it made");
    }
}
