//! Decompresses kernels and modules, with a bound on the output.

use std::io::Read;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Largest unpacked size of a kernel or module, bytes.
pub(crate) const MOST: u64 = 512 << 20;

/// Most memory that decoding may use in addition, bytes. Kernels are packed with dictionaries
/// of up to 128 MiB (`scripts/xz_wrap.sh`, `zstd -22`).
const MOST_WORKING: u32 = 136 << 20;

/// A compression format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Xz,
    Zstd,
}

impl Compression {
    /// Recognised by the first bytes; `None` if it is not compressed, or not in one of these
    /// formats.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        const MAGIC: [(Compression, &[u8]); 3] = [
            (Compression::Gzip, b"\x1f\x8b"),
            (Compression::Xz, b"\xfd7zXZ\0"),
            (Compression::Zstd, b"\x28\xb5\x2f\xfd"),
        ];
        MAGIC
            .iter()
            .find(|(_, magic)| bytes.starts_with(magic))
            .map(|&(compression, _)| compression)
    }

    /// Unpacks one stream of at most `most` bytes; what follows the stream is ignored.
    ///
    /// # Errors
    /// The stream is damaged or truncated, unpacks to more than `most` bytes or needs more
    /// than [`MOST_WORKING`].
    pub(crate) fn unpack(self, packed: &[u8], most: u64) -> Result<Vec<u8>> {
        let bytes = match self {
            Self::Gzip => read_at_most(&mut GzDecoder::new(packed), most).context("bad gzip data"),
            Self::Xz => {
                let mut reader = XzReader::new_mem_limit(packed, false, MOST_WORKING / 1024);
                read_at_most(&mut reader, most).context("bad xz data")
            }
            Self::Zstd => unpack_zstd(packed, most).context("bad zstd data"),
        }?;
        ensure!(bytes.len() as u64 <= most, "it unpacks to more than {most} bytes");
        Ok(bytes)
    }
}

/// Reads everything, but at most one byte more than `most`.
fn read_at_most(reader: &mut dyn Read, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Unpacks one frame, or only its beginning if it is larger than `most`.
fn unpack_zstd(mut packed: &[u8], most: u64) -> Result<Vec<u8>> {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(MOST_WORKING.into());
    decoder.init(&mut packed)?;
    let mut bytes = Vec::new();
    while !decoder.is_finished() && bytes.len() as u64 <= most {
        decoder.decode_blocks(&mut packed, BlockDecodingStrategy::UptoBlocks(8))?;
        bytes.extend(decoder.collect().unwrap_or_default());
    }
    Ok(bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use std::io::Write;

    pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// `printf 'a kernel a kernel a kernel\n' | xz --x86 --lzma2=dict=1MiB`.
    pub(crate) const XZ: &[u8] = include_bytes!("../tests/data/text.xz");
    /// `printf 'a kernel a kernel a kernel\n' | zstd -19`.
    pub(crate) const ZSTD: &[u8] = include_bytes!("../tests/data/text.zst");
    pub(crate) const TEXT: &[u8] = b"a kernel a kernel a kernel\n";

    #[test]
    fn each_is_known_by_its_first_bytes_and_unpacked() {
        for (packed, compression) in
            [(&gzip(TEXT)[..], Compression::Gzip), (XZ, Compression::Xz), (ZSTD, Compression::Zstd)]
        {
            assert_eq!(Compression::of(packed), Some(compression));
            let trailed = [packed, &[27, 0, 0, 0]].concat();
            assert_eq!(compression.unpack(&trailed, 27).unwrap(), TEXT, "{compression:?}");
        }
        assert_eq!(Compression::of(b"\x04\x22\x4d\x18"), None);
    }

    #[test]
    fn what_is_cut_short_is_refused_by_name() {
        for (packed, name) in [(&gzip(TEXT)[..], "gzip"), (XZ, "xz"), (ZSTD, "zstd")] {
            let compression = Compression::of(packed).unwrap();
            for length in 6..packed.len() - 13 {
                let error = compression.unpack(&packed[..length], MOST).unwrap_err();
                assert_eq!(error.to_string(), format!("bad {name} data"));
                assert!(error.chain().count() > 1, "what the decoder says is lost");
            }
        }
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        for packed in [&gzip(TEXT)[..], XZ, ZSTD] {
            let error = Compression::of(packed).unwrap().unpack(packed, 26).unwrap_err();
            assert_eq!(error.to_string(), "it unpacks to more than 26 bytes");
        }
    }
}
