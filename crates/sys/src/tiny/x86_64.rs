//! The programs for x86_64. System calls by number: arch/x86/entry/syscalls/syscall_64.tbl.

/// EM_X86_64 of the ELF header.
pub(super) const MACHINE: u16 = 62;

// r12: number of arguments; r13: the first but the name; r14: the environment; rbx: what is left to
// do; at rsp: count or answer, and above it a status.
std::arch::global_asm!(
    r#"
    .pushsection .rodata.punctual_tiny, "a", @progbits
    .globl punctual_exits_start
    .hidden punctual_exits_start
    .globl punctual_exits_end
    .hidden punctual_exits_end
    .globl punctual_forks_start
    .hidden punctual_forks_start
    .globl punctual_forks_end
    .hidden punctual_forks_end
punctual_exits_start:
    xor edi, edi
    mov eax, 231        # exit_group
    syscall
punctual_exits_end:
punctual_forks_start:
    mov r12, [rsp]
    lea r13, [rsp + 16]
    lea r14, [rsp + r12 * 8 + 16]
    sub rsp, 32
10:
    xor eax, eax        # read
    xor edi, edi
    mov rsi, rsp
    mov edx, 8
    syscall
    cmp rax, 8
    jne 16f
    mov rbx, [rsp]
11:
    test rbx, rbx
    jz 13f
    mov eax, 57         # fork
    syscall
    test rax, rax
    js 14f
    jz 15f
    mov edi, eax
    lea rsi, [rsp + 16]
    xor edx, edx
    xor r10d, r10d
    mov eax, 61         # wait4
    syscall
    test rax, rax
    js 14f
    mov eax, [rsp + 16]
    test eax, eax
    jnz 14f
    dec rbx
    jmp 11b
13:
    xor eax, eax
14:
    mov [rsp], rax
    mov eax, 1          # write
    mov edi, 1
    mov rsi, rsp
    mov edx, 8
    syscall
    jmp 10b
15:
    cmp r12, 1
    jle 16f
    mov rdi, [r13]
    mov rsi, r13
    mov rdx, r14
    mov eax, 59         # execve
    syscall
    mov edi, 127
    jmp 17f
16:
    xor edi, edi
17:
    mov eax, 231        # exit_group
    syscall
punctual_forks_end:
    .popsection
    "#
);
