//! The programs for aarch64. System calls by number: include/uapi/asm-generic/unistd.h.

/// EM_AARCH64 of the ELF header.
pub(super) const MACHINE: u16 = 183;

// x20: number of arguments; x21: the first but the name; x22: the environment; x19: what is left to
// do; at sp: count or answer, and above it a status.
std::arch::global_asm!(
    r#"
    .pushsection .rodata.punctual_tiny, "a", %progbits
    .balign 4
    .globl punctual_exits_start
    .hidden punctual_exits_start
    .globl punctual_exits_end
    .hidden punctual_exits_end
    .globl punctual_forks_start
    .hidden punctual_forks_start
    .globl punctual_forks_end
    .hidden punctual_forks_end
punctual_exits_start:
    mov x0, #0
    mov x8, #94         // exit_group
    svc #0
punctual_exits_end:
punctual_forks_start:
    ldr x20, [sp]
    add x21, sp, #16
    add x22, x21, x20, lsl #3
    sub sp, sp, #32
10:
    mov x0, #0
    mov x1, sp
    mov x2, #8
    mov x8, #63         // read
    svc #0
    cmp x0, #8
    b.ne 16f
    ldr x19, [sp]
11:
    cbz x19, 13f
    mov x0, #17         // SIGCHLD
    mov x1, #0
    mov x2, #0
    mov x3, #0
    mov x4, #0
    mov x8, #220        // clone
    svc #0
    cbz x0, 15f
    tbnz x0, #63, 14f
    add x1, sp, #16
    mov x2, #0
    mov x3, #0
    mov x8, #260        // wait4
    svc #0
    tbnz x0, #63, 14f
    ldr w0, [sp, #16]
    cbnz w0, 14f
    sub x19, x19, #1
    b 11b
13:
    mov x0, #0
14:
    str x0, [sp]
    mov x0, #1
    mov x1, sp
    mov x2, #8
    mov x8, #64         // write
    svc #0
    b 10b
15:
    cmp x20, #1
    b.le 16f
    ldr x0, [x21]
    mov x1, x21
    mov x2, x22
    mov x8, #221        // execve
    svc #0
    mov x0, #127
    b 17f
16:
    mov x0, #0
17:
    mov x8, #94         // exit_group
    svc #0
punctual_forks_end:
    .popsection
    "#
);
