//! QEMU's side of the plugin interface: what is used of it, in both versions.
//!
//! Version 1 (QEMU 7.2 to 8): include/qemu/qemu-plugin.h of QEMU 7.2. Version 4 (QEMU 10.0 and
//! later): the same file of 10.0. What differs is how instructions are counted (`counter.rs`) and
//! how their bytes are read, by a function of the same name. Only the later one tells what registers
//! hold (`registers.rs`), and what was read from memory or written.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

use crate::counter;
use crate::raw::{PluginId, RawBlock, RawInstruction, RawPlace};

#[cfg(not(any(api = "1", api = "4")))]
compile_error!("say which plugin interface: --cfg 'api=\"1\"' or --cfg 'api=\"4\"'");

/// Version of the plugin interface that this object is built for. QEMU refuses another.
#[cfg(api = "1")]
pub(crate) const VERSION: u8 = 1;
#[cfg(api = "4")]
pub(crate) const VERSION: u8 = 4;

#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "QEMU looks for this name")]
static qemu_plugin_version: c_int = VERSION as c_int;

/// A callback for blocks and instructions: the CPU's number and a word of the plugin's own.
pub(crate) type OnExecution = extern "C" fn(c_uint, *mut c_void);

/// A callback for what an instruction reads or writes: the CPU's number, what QEMU knows of the
/// access, its address, and a word of the plugin's own.
pub(crate) type OnAccess = extern "C" fn(c_uint, Access, u64, *mut c_void);

/// What QEMU knows of an access to memory (`qemu_plugin_meminfo_t`).
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Access(u32);

/// `QEMU_PLUGIN_MEM_RW`. QEMU 7.2 reports no reads of an instruction if only reads are asked for.
const READ_OR_WRITE: c_int = 3;

/// No register of the guest is read, so QEMU need not write any back (`QEMU_PLUGIN_CB_NO_REGS`).
const NO_REGS: c_int = 0;

/// Some are (`QEMU_PLUGIN_CB_R_REGS`).
const READS_REGS: c_int = 1;

#[repr(C)]
pub(crate) struct Info {
    target_name: *const c_char,
    version_min: c_int,
    version_current: c_int,
    is_system: bool,
    cpus: c_int,
    cpus_max: c_int,
}

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(
        id: PluginId,
        callback: extern "C" fn(PluginId, *mut RawBlock),
    );
    fn qemu_plugin_register_atexit_cb(
        id: PluginId,
        callback: extern "C" fn(PluginId, *mut c_void),
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut RawBlock,
        callback: OnExecution,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut RawInstruction,
        callback: OnExecution,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut RawInstruction,
        callback: OnAccess,
        flags: c_int,
        which: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_get_hwaddr(access: Access, address: u64) -> *mut RawPlace;
    fn qemu_plugin_hwaddr_phys_addr(place: *const RawPlace) -> u64;
    fn qemu_plugin_tb_n_insns(block: *const RawBlock) -> usize;
    fn qemu_plugin_tb_vaddr(block: *const RawBlock) -> u64;
    fn qemu_plugin_tb_get_insn(block: *const RawBlock, index: usize) -> *mut RawInstruction;
    fn qemu_plugin_insn_vaddr(instruction: *const RawInstruction) -> u64;
    fn qemu_plugin_insn_size(instruction: *const RawInstruction) -> usize;
}

/// # Safety
/// Both are from the block that is being translated; the result holds `size` bytes at most.
#[cfg(api = "1")]
unsafe fn copy_bytes(instruction: *const RawInstruction, size: usize, to: &mut [u8]) {
    unsafe extern "C" {
        fn qemu_plugin_insn_data(instruction: *const RawInstruction) -> *const c_void;
    }
    // SAFETY: QEMU has `size` bytes there while it translates the block.
    let from = unsafe {
        core::slice::from_raw_parts(qemu_plugin_insn_data(instruction).cast::<u8>(), size)
    };
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// # Safety
/// The instruction belongs to the block that is being translated.
#[cfg(api = "4")]
unsafe fn copy_bytes(instruction: *const RawInstruction, _size: usize, to: &mut [u8]) {
    unsafe extern "C" {
        fn qemu_plugin_insn_data(
            instruction: *const RawInstruction,
            to: *mut c_void,
            len: usize,
        ) -> usize;
    }
    // SAFETY: at most the length of `to` is written to it.
    unsafe { qemu_plugin_insn_data(instruction, to.as_mut_ptr().cast(), to.len()) };
}

/// A block while it is being translated.
pub(crate) struct Block<'a>(&'a mut RawBlock);

impl Block<'_> {
    /// # Safety
    /// QEMU has passed this pointer to a translation callback, which has not returned.
    pub(crate) unsafe fn new(raw: *mut RawBlock) -> Self {
        // SAFETY: as required; the type has no bytes that a borrow could alias.
        Self(unsafe { &mut *raw })
    }

    /// Address of its first instruction.
    pub(crate) fn address(&self) -> u64 {
        // SAFETY: it is being translated.
        unsafe { qemu_plugin_tb_vaddr(self.0) }
    }

    pub(crate) fn on_execution(&mut self, callback: OnExecution, word: u64) {
        // SAFETY: it is being translated; the callback takes the word for what it is.
        unsafe { qemu_plugin_register_vcpu_tb_exec_cb(self.0, callback, NO_REGS, data(word)) }
    }

    /// The same for a callback that reads registers.
    pub(crate) fn on_execution_reading(&mut self, callback: OnExecution, word: u64) {
        // SAFETY: it is being translated; the callback takes the word for what it is.
        unsafe { qemu_plugin_register_vcpu_tb_exec_cb(self.0, callback, READS_REGS, data(word)) }
    }

    /// Passes its instructions to `f`, in order. Each is counted after what `f` has registered
    /// for it, so that callbacks see the number of instructions before it.
    pub(crate) fn each_instruction(&mut self, mut f: impl FnMut(&mut Instruction)) {
        // SAFETY: it is being translated.
        let count = unsafe { qemu_plugin_tb_n_insns(self.0) };
        for index in 0..count {
            // SAFETY: the index is below the number of its instructions.
            let mut instruction = Instruction(unsafe { qemu_plugin_tb_get_insn(self.0, index) });
            f(&mut instruction);
            // SAFETY: it belongs to this block.
            unsafe { counter::add_one(instruction.0) }
        }
    }
}

/// An instruction of a block that is being translated; only such have one.
pub(crate) struct Instruction(*mut RawInstruction);

impl Instruction {
    pub(crate) fn address(&self) -> u64 {
        // SAFETY: its block is being translated.
        unsafe { qemu_plugin_insn_vaddr(self.0) }
    }

    /// Its bytes, up to 16, and their number. No instruction is longer.
    pub(crate) fn bytes(&self) -> ([u8; 16], usize) {
        let mut bytes = [0; 16];
        // SAFETY: its block is being translated.
        let size = unsafe { qemu_plugin_insn_size(self.0) };
        // SAFETY: likewise, and the size is QEMU's.
        unsafe { copy_bytes(self.0, size, &mut bytes) };
        (bytes, size.min(16))
    }

    /// What it reads from memory or writes is reported after it has, and after it was counted.
    pub(crate) fn on_access(&mut self, callback: OnAccess, word: u64) {
        // SAFETY: its block is being translated; the callback takes the word for what it is.
        unsafe {
            qemu_plugin_register_vcpu_mem_cb(self.0, callback, NO_REGS, READ_OR_WRITE, data(word))
        }
    }

    pub(crate) fn on_execution(&mut self, callback: OnExecution, word: u64) {
        // SAFETY: its block is being translated; the callback takes the word for what it is.
        unsafe { qemu_plugin_register_vcpu_insn_exec_cb(self.0, callback, NO_REGS, data(word)) }
    }

    /// The same for a callback that reads registers, which are as they are before the instruction.
    pub(crate) fn on_execution_reading(&mut self, callback: OnExecution, word: u64) {
        // SAFETY: its block is being translated; the callback takes the word for what it is.
        unsafe { qemu_plugin_register_vcpu_insn_exec_cb(self.0, callback, READS_REGS, data(word)) }
    }
}

impl Access {
    /// Where in the guest's memory it is; `None`: not in its memory.
    pub(crate) fn place(self, address: u64) -> Option<u64> {
        // SAFETY: called while QEMU reports this access, at its address.
        let place = unsafe { qemu_plugin_get_hwaddr(self, address) };
        // SAFETY: QEMU has just made it; it is valid until the next one.
        (!place.is_null()).then(|| unsafe { qemu_plugin_hwaddr_phys_addr(place) })
    }
}

#[cfg(api = "4")]
impl Access {
    /// The word that was read or written.
    pub(crate) fn word(self) -> u32 {
        /// `qemu_plugin_mem_value`.
        #[repr(C)]
        struct Value {
            kind: c_int,
            data: [u64; 2],
        }
        unsafe extern "C" {
            fn qemu_plugin_mem_get_value(access: Access) -> Value;
        }
        // SAFETY: called while QEMU reports this access.
        let value = unsafe { qemu_plugin_mem_get_value(self) };
        let _ = value.kind;
        let [a, b, c, d, ..] = value.data[0].to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}

#[cfg(api = "1")]
impl Access {
    /// Not told: nobody asks.
    pub(crate) fn word(self) -> u32 {
        0
    }
}

/// QEMU hands a pointer through, which here is a number.
fn data(word: u64) -> *mut c_void {
    core::ptr::without_provenance_mut(usize::try_from(word).unwrap_or_default())
}

/// What QEMU says of its guest.
pub(crate) struct Guest<'a> {
    pub(crate) target: &'a [u8],
    pub(crate) is_system: bool,
    pub(crate) cpus: c_int,
}

impl Guest<'_> {
    /// # Safety
    /// QEMU has passed this pointer to `qemu_plugin_install`, which has not returned.
    pub(crate) unsafe fn new(info: *const Info) -> Self {
        // SAFETY: as required.
        let info = unsafe { &*info };
        // SAFETY: QEMU's names are terminated strings.
        let target = unsafe { CStr::from_ptr(info.target_name) }.to_bytes();
        let _ = (info.version_min, info.version_current, info.cpus_max);
        Self { target, is_system: info.is_system, cpus: info.cpus }
    }
}

/// # Safety
/// Both are those of `qemu_plugin_install`.
pub(crate) unsafe fn each_argument<E>(
    count: c_int,
    arguments: *const *const c_char,
    mut f: impl FnMut(&'static [u8]) -> Result<(), E>,
) -> Result<(), E> {
    for index in 0..usize::try_from(count).unwrap_or_default() {
        // SAFETY: there are `count` pointers to terminated strings, which QEMU keeps for as long
        // as the plugin is loaded.
        f(unsafe { CStr::from_ptr(*arguments.add(index)) }.to_bytes())?;
    }
    Ok(())
}

/// Registers the callbacks that are for the whole guest.
pub(crate) fn register(
    id: PluginId,
    translate: extern "C" fn(PluginId, *mut RawBlock),
    end: extern "C" fn(PluginId, *mut c_void),
) {
    counter::install(id);
    // SAFETY: called while the plugin is installed, with callbacks that live as long as it.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
        qemu_plugin_register_atexit_cb(id, end, core::ptr::null_mut());
    }
}
