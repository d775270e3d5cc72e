//! Files that come from elsewhere: read without waiting for anybody, and only so much.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file for reading; links are followed. Nothing is waited for: a FIFO without
/// a writer is refused like any other file that is not a regular one.
///
/// # Errors
/// Those of open(2) and fstat(2); `InvalidInput` if it is no regular file, which the text says.
pub fn open(path: &Path) -> io::Result<File> {
    // O_NOCTTY: a terminal does not become that of this process before it is refused.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let text = format!("it is {}, and no regular file", name_of(kind));
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// The content of a regular file of at most `most` bytes.
///
/// # Errors
/// Those of [`open`] and of read(2); `FileTooLarge` if it is larger, which the text says.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_open(&open(path)?, most)
}

/// The content of an open file from where it is, of at most `most` bytes.
///
/// # Errors
/// Those of [`read`].
pub fn read_open(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    // Files of /proc say that they have none.
    let room = usize::try_from(length.min(most)).unwrap_or(0);
    let mut bytes = Vec::with_capacity(if length <= most { room } else { 0 });
    if length <= most {
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    if length.max(bytes.len() as u64) > most {
        let text = format!("it is larger than {}", size(most));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// The text of a regular file of at most `most` bytes.
///
/// # Errors
/// Those of [`read`]; `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text (UTF-8)"))
}

fn name_of(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes > 0 && bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn only_regular_files_of_the_right_size_are_read() {
        let folder = std::env::temp_dir().join(format!("punctual-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (fifo, text) = (folder.join("fifo"), folder.join("text"));
        let path = CString::new(fifo.as_os_str().as_bytes()).unwrap();
        // SAFETY: a NUL-terminated path.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        fs::write(&text, "twelve bytes").unwrap();
        let refused = |path: &Path, most| read(path, most).unwrap_err().to_string();
        assert_eq!(refused(&fifo, 9), "it is a FIFO, and no regular file");
        assert_eq!(refused(&folder, 9), "it is a folder, and no regular file");
        assert_eq!(refused(Path::new("/dev/zero"), 9), "it is a device, and no regular file");
        assert_eq!(refused(&text, 11), "it is larger than 11 bytes");
        assert_eq!(read(&text, 12).unwrap(), b"twelve bytes");
        // It says that it has no bytes.
        assert_eq!(refused(Path::new("/proc/self/maps"), 9), "it is larger than 9 bytes");
        fs::write(&text, [0xff]).unwrap();
        assert_eq!(read_text(&text, 9).unwrap_err().to_string(), "it is not text (UTF-8)");
        let file = File::create(&text).unwrap();
        file.set_len(1 << 41).unwrap();
        assert_eq!(refused(&text, 64 << 20), "it is larger than 64 MiB");
        fs::remove_dir_all(folder).unwrap();
    }
}
