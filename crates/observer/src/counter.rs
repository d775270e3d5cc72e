//! How instructions are counted: QEMU's translated code adds to a number in memory, without a
//! call. Four numbers added to in turn, so that no addition waits for the one before, were tried:
//! no faster.

pub(crate) use version::{add_one, install, now};

/// `QEMU_PLUGIN_INLINE_ADD_U64`.
const ADD: core::ffi::c_int = 0;

#[cfg(api = "1")]
mod version {
    use core::ffi::{c_int, c_void};

    use super::ADD;
    use crate::raw::{PluginId, RawInstruction};
    use crate::single::Single;

    static COUNT: Single<u64> = Single::new(0);

    unsafe extern "C" {
        fn qemu_plugin_register_vcpu_insn_exec_inline(
            instruction: *mut RawInstruction,
            operation: c_int,
            target: *mut c_void,
            operand: u64,
        );
    }

    pub(crate) fn install(_id: PluginId) {}

    /// Instructions begun so far.
    #[inline(always)]
    pub(crate) fn now() -> u64 {
        // SAFETY: it is static and never borrowed. What changes it is unseen by the compiler.
        unsafe { COUNT.place().read_volatile() }
    }

    /// Counts an instruction.
    ///
    /// # Safety
    /// Its block is being translated.
    pub(crate) unsafe fn add_one(instruction: *mut RawInstruction) {
        let target = COUNT.place().cast();
        // SAFETY: the target is static, and the instruction as required.
        unsafe { qemu_plugin_register_vcpu_insn_exec_inline(instruction, ADD, target, 1) }
    }
}

#[cfg(api = "4")]
mod version {
    use core::ffi::{c_int, c_uint, c_void};
    use core::ptr::null_mut;

    use super::ADD;
    use crate::raw::{PluginId, RawInstruction, RawScoreboard};
    use crate::registers;
    use crate::single::Single;

    /// `qemu_plugin_u64`: a number in each CPU's part of a scoreboard.
    #[repr(C)]
    struct Slot {
        scoreboard: *mut RawScoreboard,
        offset: usize,
    }

    static SCOREBOARD: Single<*mut RawScoreboard> = Single::new(null_mut());

    /// Where the CPU's count is. It is zero for as long as there is no CPU.
    static COUNT: Single<*const u64> = Single::new(&raw const ZERO);
    static ZERO: u64 = 0;

    unsafe extern "C" {
        fn qemu_plugin_scoreboard_new(size: usize) -> *mut RawScoreboard;
        fn qemu_plugin_scoreboard_find(scoreboard: *mut RawScoreboard, cpu: c_uint) -> *mut c_void;
        fn qemu_plugin_register_vcpu_init_cb(
            id: PluginId,
            callback: extern "C" fn(PluginId, c_uint),
        );
        fn qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
            instruction: *mut RawInstruction,
            operation: c_int,
            slot: Slot,
            operand: u64,
        );
    }

    pub(crate) fn install(id: PluginId) {
        // SAFETY: called while the plugin is installed, when both are allowed.
        let scoreboard = unsafe {
            qemu_plugin_register_vcpu_init_cb(id, cpu_exists);
            qemu_plugin_scoreboard_new(size_of::<u64>())
        };
        SCOREBOARD.with(|all| *all = scoreboard);
    }

    /// QEMU moves a scoreboard only when a CPU is added, and then translates all code anew, which
    /// has its address in it. So it need not be asked for the place at each event.
    extern "C" fn cpu_exists(_id: PluginId, cpu: c_uint) {
        let scoreboard = SCOREBOARD.with(|all| *all);
        // SAFETY: the scoreboard is never freed, and this CPU exists.
        let found = unsafe { qemu_plugin_scoreboard_find(scoreboard, cpu) };
        COUNT.with(|count| *count = found.cast());
        registers::find();
    }

    /// Instructions begun so far.
    #[inline(always)]
    pub(crate) fn now() -> u64 {
        // SAFETY: this is the zero or the CPU's count, neither ever borrowed. What changes it is
        // unseen by the compiler.
        COUNT.with(|count| unsafe { count.read_volatile() })
    }

    /// Counts an instruction.
    ///
    /// # Safety
    /// Its block is being translated.
    pub(crate) unsafe fn add_one(instruction: *mut RawInstruction) {
        let scoreboard = SCOREBOARD.with(|all| *all);
        let slot = Slot { scoreboard, offset: 0 };
        // SAFETY: the scoreboard is never freed and has this slot; the instruction is as required.
        unsafe {
            qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(instruction, ADD, slot, 1);
        }
    }
}
