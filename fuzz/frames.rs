//! Frames whose checksum is right, which chance does not find.

/// Frames of payloads of at most 255 bytes, each behind its length.
pub fn of(bytes: &[u8]) -> Vec<u8> {
    let (mut framed, mut rest) = (Vec::new(), bytes);
    while let Some((&length, behind)) = rest.split_first() {
        let (payload, behind) = behind.split_at(usize::from(length).min(behind.len()));
        frame(payload, &mut framed);
        rest = behind;
    }
    framed
}

fn frame(payload: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&length);
    checksum.update(payload);
    out.extend_from_slice(&[0xB5, 0x1A]);
    out.extend_from_slice(&length);
    out.extend_from_slice(&checksum.finalize().to_le_bytes());
    out.extend_from_slice(payload);
}
