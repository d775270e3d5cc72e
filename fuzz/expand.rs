//! Inputs of megabytes from inputs of some bytes: what takes time out of proportion to a file's
//! size shows with large files only, and a fuzzer makes no large ones.

/// Bytes of an expanded input, at most: those for which -timeout of ./run is too short if each
/// of them costs the length of a frame.
pub const MOST: usize = 4 << 20;

/// Repeats chunks of the input: each chunk is its length (one byte), how often it comes as a
/// power of two (one byte, modulo 23), and its bytes. In each repetition, the number of it is
/// added to the first of its bytes that is 0xFF, if there is one.
pub fn of(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), bytes);
    while let [length, power, behind @ ..] = rest {
        let (chunk, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        let counter = chunk.iter().position(|byte| *byte == 0xFF);
        for number in 0..1_u32 << (power % 23) {
            if out.len() + chunk.len() > MOST || chunk.is_empty() {
                break;
            }
            let at = out.len();
            out.extend_from_slice(chunk);
            if let Some(counter) = counter {
                out[at + counter] = number.to_le_bytes()[0];
            }
        }
        rest = behind;
    }
    out
}
