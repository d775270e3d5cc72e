//! Kernel images, as they come and as the payload of a bzImage.

use punctual_lab::kernel::image::{Form, payload};

/// A bzImage of one sector of setup around a payload, which chance does not find.
fn bz_image(packed: &[u8]) -> Vec<u8> {
    let mut image = vec![0; 1024];
    image[0x1f1] = 1;
    image[0x202..0x208].copy_from_slice(b"HdrS\x0f\x02");
    image[0x24c..0x250].copy_from_slice(&u32::try_from(packed.len()).unwrap().to_le_bytes());
    image.extend_from_slice(packed);
    image
}

pub fn target(bytes: &[u8]) {
    if let Ok(form) = Form::of(bytes) {
        let _ = form.release(bytes);
    }
    let _ = payload(bytes);
    // Of at most 1 MiB: what is fuzzed is the way there, not the memory of the machine.
    let _ = payload(&bz_image(&[bytes, &[0, 0, 16, 0]].concat()));
}
