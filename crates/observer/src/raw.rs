//! What QEMU hands out by address only.

/// QEMU's name for this plugin.
pub(crate) type PluginId = u64;

/// `struct qemu_plugin_tb`.
#[repr(C)]
pub(crate) struct RawBlock {
    _opaque: [u8; 0],
}

/// `struct qemu_plugin_insn`.
#[repr(C)]
pub(crate) struct RawInstruction {
    _opaque: [u8; 0],
}

/// `struct qemu_plugin_hwaddr`.
#[repr(C)]
pub(crate) struct RawPlace {
    _opaque: [u8; 0],
}

/// `struct qemu_plugin_register`.
#[cfg(api = "4")]
#[repr(C)]
pub(crate) struct RawRegister {
    _opaque: [u8; 0],
}

/// `struct qemu_plugin_scoreboard`.
#[cfg(api = "4")]
#[repr(C)]
pub(crate) struct RawScoreboard {
    _opaque: [u8; 0],
}
