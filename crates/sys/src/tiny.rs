//! Two programs of a page each, in machine code, for timing what the kernel takes to make a process
//! and to start a program: one that exits, and one that forks.
//!
//! Neither has a C library, a dynamic loader or memory to speak of, so that what is timed is the
//! kernel's share, the same whatever this program has grown to.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};

use crate::error::in_call;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as code;
#[cfg(target_arch = "x86_64")]
use x86_64 as code;

/// Where the program is mapped: a multiple of every size of a page, above what no program may map.
const ADDRESS: u64 = 0x40_0000;
/// Largest page, of arm64 kernels that have such.
const ALIGNMENT: u64 = 0x1_0000;
const FILE_HEADER: u16 = 64;
const SEGMENT_HEADER: u16 = 56;
const HEADERS: u16 = FILE_HEADER + 2 * SEGMENT_HEADER;

/// One of the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Exits with status 0.
    Exits,
    /// Reads a count (8 bytes, native) from standard input; forks that often and waits for each
    /// child; writes 0 to standard output, or the negative errno of fork or wait4, or the status of
    /// a child that did not exit with 0; and so on until the end of its input. A child exits at
    /// once. If the program has arguments, its children become the program that the first names,
    /// with these arguments.
    Forks,
}

impl Program {
    /// Makes an executable file of it that is only in memory.
    ///
    /// # Errors
    /// `Unsupported` on other architectures than x86_64 and aarch64; otherwise those of
    /// memfd_create(2), with its name.
    pub fn file(self) -> io::Result<File> {
        let name = match self {
            Self::Exits => c"punctual-exits",
            Self::Forks => c"punctual-forks",
        };
        let mut file = executable(name)?;
        file.write_all(&self.image()?)?;
        Ok(file)
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn image(self) -> io::Result<Vec<u8>> {
        let (start, end) = match self {
            Self::Exits => (&raw const punctual_exits_start, &raw const punctual_exits_end),
            Self::Forks => (&raw const punctual_forks_start, &raw const punctual_forks_end),
        };
        Ok(image(code::MACHINE, between(start, end)))
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn image(self) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A file in memory that may be executed, open to whoever gets its descriptor, over exec too.
fn executable(name: &CStr) -> io::Result<File> {
    use std::os::fd::FromRawFd;

    let create = |flags: libc::c_uint| {
        // SAFETY: a NUL-terminated name.
        crate::error::check(unsafe { libc::memfd_create(name.as_ptr(), flags) })
    };
    // Kernels before 6.3 do not know the flag, and make all such files executable.
    let made = create(libc::MFD_EXEC).or_else(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => create(0),
        _ => Err(error),
    });
    let fd = made.map_err(|error| in_call("memfd_create (vm.memfd_noexec)", &error))?;
    // SAFETY: the descriptor was just made and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe extern "C" {
    static punctual_exits_start: u8;
    static punctual_exits_end: u8;
    static punctual_forks_start: u8;
    static punctual_forks_end: u8;
}

/// The bytes between two marks in this program's own code.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn between(start: *const u8, end: *const u8) -> &'static [u8] {
    let length = end.addr().saturating_sub(start.addr());
    // SAFETY: both are of one section that the assembler has laid out in this order; it is
    // readable and never changes.
    unsafe { std::slice::from_raw_parts(start, length) }
}

/// An ELF file (System V ABI, and its processor supplements) of one segment, which is the whole
/// file, and one that says that the stack is not executable.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn image(machine: u16, code: &[u8]) -> Vec<u8> {
    const EXECUTABLE: u16 = 2;
    const LOAD: u32 = 1;
    const GNU_STACK: u32 = 0x6474_e551;
    const READ_EXECUTE: u32 = 5;
    const READ_WRITE: u32 = 6;
    let length = u64::from(HEADERS) + code.len() as u64;
    let mut image = Vec::with_capacity(usize::from(HEADERS) + code.len());
    // 64 bits, little-endian, version 1, System V.
    image.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    image.extend([EXECUTABLE, machine].iter().flat_map(|half| half.to_le_bytes()));
    image.extend(1_u32.to_le_bytes());
    let (entry, segments, sections) = (ADDRESS + u64::from(HEADERS), u64::from(FILE_HEADER), 0_u64);
    image.extend([entry, segments, sections].iter().flat_map(|word| word.to_le_bytes()));
    image.extend(0_u32.to_le_bytes());
    let sizes = [FILE_HEADER, SEGMENT_HEADER, 2, 0, 0, 0];
    image.extend(sizes.iter().flat_map(|half| half.to_le_bytes()));
    for (kind, flags, words) in [
        (LOAD, READ_EXECUTE, [0, ADDRESS, ADDRESS, length, length, ALIGNMENT]),
        (GNU_STACK, READ_WRITE, [0, 0, 0, 0, 0, 16]),
    ] {
        image.extend([kind, flags].iter().flat_map(|word| word.to_le_bytes()));
        image.extend(words.iter().flat_map(|word: &u64| word.to_le_bytes()));
    }
    image.extend(code);
    image
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::process::{Child, Command, Stdio};

    fn path(file: &File) -> String {
        format!("/proc/self/fd/{}", file.as_raw_fd())
    }

    fn forks(file: &File, args: &[String]) -> Child {
        let mut command = Command::new(path(file));
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    fn ordered(child: &mut Child, count: u64) -> i64 {
        child.stdin.as_mut().unwrap().write_all(&count.to_ne_bytes()).unwrap();
        let mut answer = [0; 8];
        child.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
        i64::from_ne_bytes(answer)
    }

    #[test]
    fn programs_do_what_they_say() {
        let (exits, file) = (Program::Exits.file().unwrap(), Program::Forks.file().unwrap());
        assert!(Command::new(path(&exits)).status().unwrap().success());
        let sh = |line: &str| ["/bin/sh", "-c", line].map(str::to_owned).to_vec();
        let marks = std::env::temp_dir().join(format!("punctual-tiny-{}", std::process::id()));
        let adds = format!("echo x >> {}", marks.display());
        for (args, expected) in [
            (vec![], 0),
            (vec![path(&exits)], 0),
            (sh(&adds), 0),
            (sh("exit 3"), 3 << 8),
            (vec!["/does/not/exist".to_owned()], 127 << 8),
        ] {
            let mut child = forks(&file, &args);
            for count in [0, 1, 5] {
                let expected = if count == 0 { 0 } else { expected };
                assert_eq!(ordered(&mut child, count), expected, "{args:?}");
            }
            drop(child.stdin.take());
            assert!(child.wait().unwrap().success(), "{args:?}");
        }
        let made = std::fs::read_to_string(&marks).unwrap();
        std::fs::remove_file(marks).unwrap();
        assert_eq!(made.lines().count(), 6, "one for each fork");
    }
}
