//! Guests whose init is a script: a shell, a few programs and the binary, and nothing of the lab's.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use punctual_lab::arch::Arch;
use punctual_lab::board::BoardSpec;
use punctual_lab::emulator::Emulator;
use punctual_lab::initramfs::Initramfs;
use punctual_lab::kernel::{Kernel, Kernels};

use punctual_harness::processes::wait_at_most;
use punctual_harness::{Place, release};

/// Where the shell finds a program.
fn path_of(program: &str) -> String {
    let line = format!("command -v {program}");
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    assert!(output.status.success(), "{program} is not installed");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The libraries of a program and its dynamic linker, as ldd(1) finds them.
pub fn libraries(program: &str) -> Vec<String> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    assert!(output.status.success(), "ldd {program}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned).collect()
}

/// A guest with these programs of this machine, its shell, whose script is the guest's init, and the
/// binary that is tested.
pub fn initramfs(programs: &[&str], script: &str) -> Vec<u8> {
    initramfs_with(programs, script, [].into_iter())
}

/// [`initramfs`] with these files besides, in its root folder.
pub fn initramfs_with<'a>(
    programs: &[&str],
    script: &str,
    own: impl Iterator<Item = (&'a str, &'a Vec<u8>)>,
) -> Vec<u8> {
    let mut files = Initramfs::new().unwrap();
    for folder in ["proc", "sys", "run", "tmp"] {
        files.directory(folder).unwrap();
    }
    let mut from_here = BTreeSet::new();
    for program in programs {
        let path = path_of(program);
        from_here.extend(libraries(&path));
        from_here.insert(path);
    }
    from_here.extend(libraries("/bin/sh"));
    from_here.insert("/bin/sh".to_owned());
    for path in from_here {
        files.file(path.trim_start_matches('/'), 0o755, &fs::read(&path).unwrap()).unwrap();
    }
    for (name, content) in own {
        files.file(name, 0o755, content).unwrap();
    }
    files.file("punctual", 0o755, &fs::read(release().unwrap()).unwrap()).unwrap();
    files.file("init", 0o755, script.as_bytes()).unwrap();
    files.finish()
}

/// Boots an initramfs on the board of the lab with Debian's kernel with PREEMPT_RT, to its end, which
/// comes within `limit`; what it said.
pub fn console(place: &Place, initramfs: &[u8], limit: Duration) -> String {
    console_of(place, initramfs, &BoardSpec::default(), &kernel(), limit)
}

/// Debian's kernel with PREEMPT_RT.
pub fn kernel() -> Kernel {
    let kernels = Kernels::of_user().unwrap();
    let kernel = kernels.resolve(&["debian:rt"], Arch::X86_64, None, false, &mut |_| ());
    kernel.unwrap().remove(0)
}

/// [`console`] of another board, and of the kernel that the caller knows.
pub fn console_of(
    place: &Place,
    initramfs: &[u8],
    board: &BoardSpec,
    kernel: &Kernel,
    limit: Duration,
) -> String {
    fs::write(place.path.join("initramfs"), initramfs).unwrap();
    let emulator = Emulator::find(Arch::X86_64, None, None).unwrap();
    let mut qemu = Command::new(&emulator.program)
        .args(board.options(&emulator.cpu, 1))
        .args(["-chardev", "null,id=channel", "-serial", "file:console", "-initrd", "initramfs"])
        .arg("-kernel")
        .arg(&kernel.image)
        .args(["-append", &board.parameters(&kernel.parameters)])
        .current_dir(&place.path)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    wait_at_most(&mut qemu, limit, "the guest");
    String::from_utf8_lossy(&fs::read(place.path.join("console")).unwrap()).replace('\r', "")
}
