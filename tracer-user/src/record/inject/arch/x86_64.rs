//! x86-64: registers, the instructions, the signal frame (`arch/x86/include/uapi/asm/{ptrace,sigcontext,ucontext}.h`).

use super::super::scratch::{self, Plan};
use super::super::target::Addresses;

/// There are instructions for this processor.
pub const SUPPORTED: bool = true;
/// Its name.
pub const NAME: &str = "x86-64";

/// Calls in which no lock of the C library is held: a thread that waits in one of them can be used.
/// read, poll, select, nanosleep, accept, recvfrom, recvmsg, wait4, rt_sigtimedwait, clock_nanosleep, epoll_wait,
/// pselect6, ppoll, epoll_pwait, accept4, recvmmsg, pause, waitid.
pub const SAFE_CALLS: &[i64] =
    &[7, 232, 281, 271, 0, 23, 270, 45, 47, 43, 288, 299, 61, 247, 34, 128, 35, 230];
/// futex: also how locks are waited for, some of which other allocators hold while they wait for the next.
pub const LAST_RESORT_CALLS: &[i64] = &[202];
/// What loading a library and beginning its thread may call: mmap, mprotect, munmap, brk, rt_sigaction, rt_sigprocmask,
/// rt_sigreturn, pread64, clone, ftruncate, memfd_create, close, openat, newfstatat, read, fstat, futex, clone3,
/// getrandom, madvise, prctl, gettid, getpid, sched_getaffinity, set_robust_list, rseq, clock_gettime.
pub const NEEDED_CALLS: &[u32] = &[
    9, 10, 11, 12, 13, 14, 15, 17, 56, 77, 319, 3, 257, 262, 0, 5, 202, 435, 318, 28, 157, 186, 39, 204, 273,
    334, 228,
];
/// `AUDIT_ARCH_X86_64`.
pub const AUDIT_ARCH: u32 = 0xc000_003e;

const NR_MMAP: u64 = 9;
const NR_MUNMAP: u32 = 11;
const NR_RT_SIGRETURN: u8 = 15;
const NR_CLOSE: u32 = 3;
const NR_MEMFD_CREATE: u32 = 319;
/// Results with which the kernel marks a call that it will make again (`include/linux/errno.h`): ERESTARTSYS,
/// ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK.
const RESTARTS: [i64; 4] = [-512, -513, -514, -516];

/// Registers of a stopped thread, as `NT_PRSTATUS` has them.
#[derive(Clone, Copy, Debug)]
pub struct Registers(pub libc::user_regs_struct);

impl Default for Registers {
    fn default() -> Self {
        // SAFETY: a structure of integers.
        Self(unsafe { std::mem::zeroed() })
    }
}

impl Registers {
    /// Bytes of the kernel's structure.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: a structure of integers without padding; any bytes are a value.
        unsafe {
            std::slice::from_raw_parts_mut((&raw mut self.0).cast(), size_of::<libc::user_regs_struct>())
        }
    }

    /// The same, to read.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts((&raw const self.0).cast(), size_of::<libc::user_regs_struct>()) }
    }

    /// Whether the thread was stopped inside a safe system call that goes on afterwards.
    pub fn in_restartable_call(&self) -> bool {
        let number = self.0.orig_rax as i64;
        (SAFE_CALLS.contains(&number) || LAST_RESORT_CALLS.contains(&number))
            && RESTARTS.contains(&(self.0.rax as i64))
            && self.0.cs == 0x33
    }

    /// The stack pointer.
    pub fn stack(&self) -> u64 {
        self.0.rsp
    }

    /// The address of the instruction that made the call.
    pub fn call_instruction(&self) -> u64 {
        self.0.rip.wrapping_sub(2)
    }

    /// Makes the call that the thread is about to make none.
    pub fn skip_call(&mut self) {
        self.0.orig_rax = u64::MAX;
    }
}

/// Whether bytes are `syscall`.
pub fn is_call_instruction(code: &[u8]) -> bool {
    code == [0x0f, 0x05]
}

/// Whether code is that of `_start` in glibc's `crt1.o`: it clears `rbp`, saves `rdx`, takes `argc` from the stack and
/// aligns it, with or without the landing pad of newer versions. It is 34 bytes or more and runs once.
pub fn is_start_up_code(code: &[u8]) -> bool {
    const BODY: [u8; 12] = [0x31, 0xed, 0x49, 0x89, 0xd1, 0x5e, 0x48, 0x89, 0xe2, 0x48, 0x83, 0xe4];
    const LANDING_PAD: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    code.strip_prefix(&LANDING_PAD).unwrap_or(code).starts_with(&BODY)
}

/// The first instructions, which take the place of the start-up code: map the scratch memory and go there if it was
/// filled; from there come back to free it; return by the signal frame.
pub fn first_code() -> Vec<u8> {
    vec![
        0x0f,
        0x05, // syscall: mmap
        0x48,
        0x3d,
        0x00,
        0xf0,
        0xff,
        0xff, // cmp rax, -4096
        0x77,
        0x0b, // ja +11: no memory
        0x48,
        0x83,
        0x38,
        0x00, // cmp qword [rax], 0: GO
        0x74,
        0x05, // je +5: nobody filled it
        0xff,
        0x60,
        0x08, // jmp [rax+8]: NEXT
        0x0f,
        0x05, // syscall: munmap
        0x6a,
        NR_RT_SIGRETURN,
        0x58, // push 15; pop rax
        0x0f,
        0x05, // syscall: rt_sigreturn
    ]
}

/// Offsets in it of the instruction after each call: mmap, munmap, rt_sigreturn.
pub fn stops(place: u64) -> (u64, u64, u64) {
    (place + 2, place + 21, place + 26)
}

/// Offset of the munmap.
const TAIL: u64 = 19;

/// The address from which the scratch memory is freed.
pub fn tail(place: u64) -> u64 {
    place + TAIL
}

/// Registers with which the first instructions begin.
pub fn begin(registers: &Registers, addresses: &Addresses, frame: u64) -> Registers {
    let mut own = *registers;
    own.0.rip = addresses.place;
    own.0.rax = NR_MMAP;
    // Not in a system call any more: nothing is made again on the way out.
    own.0.orig_rax = u64::MAX;
    own.0.rdi = 0;
    own.0.rsi = scratch::BYTES;
    own.0.rdx = (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) as u64;
    own.0.r10 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    own.0.r8 = u64::MAX;
    own.0.r9 = 0;
    // `rt_sigreturn` finds its frame one word below the stack pointer.
    own.0.rsp = frame + 8;
    // Direction flag clear, as functions expect it.
    own.0.eflags &= !0x400;
    own
}

/// Bytes of `struct rt_sigframe` that `rt_sigreturn` reads: the return address and the `ucontext`.
const FRAME_BYTES: usize = 8 + 304;
/// Where the floating-point state lies in what [`frame`] makes; aligned as `fxrstor` wants it if the frame is.
const FLOAT_AT: usize = 320;

/// The signal frame with which the thread goes back to what it did, for the case that gtrace is killed meanwhile: the
/// call is made again. `float`: 512 bytes of `fxsave`. `address`: where it will lie, a multiple of 16.
pub fn frame(registers: &Registers, float: &[u8], mask: u64, address: u64) -> Vec<u8> {
    let r = &registers.0;
    let (mut rax, mut rip) = (r.rax, r.rip);
    if RESTARTS.contains(&(rax as i64)) {
        // Also where the kernel would have gone on with what remains of the call's time, which it no longer knows: a wait
        // that is too long is one that every program must expect, an interrupted one without a signal is not.
        rax = r.orig_rax;
        rip = registers.call_instruction();
    }
    let mut frame = Vec::with_capacity(FLOAT_AT + 512);
    let mut word = |value: u64| frame.extend_from_slice(&value.to_ne_bytes());
    word(0); // return address
    word(2 | 4); // uc_flags: UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS
    word(0); // uc_link
    // uc_stack: a mode that there is none of, so that the thread's alternate stack stays what it is.
    word(0);
    word(0xdead);
    word(0);
    for value in
        [r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rdi, r.rsi, r.rbp, r.rbx, r.rdx, rax]
    {
        word(value);
    }
    for value in [r.rcx, r.rsp, rip, r.eflags] {
        word(value);
    }
    word((r.cs & 0xffff) | (r.ss & 0xffff) << 48); // cs, gs, fs, ss
    word(0); // err
    word(0); // trapno
    word(0); // oldmask
    word(0); // cr2
    word(address + FLOAT_AT as u64); // fpstate
    for _ in 0..8 {
        word(0);
    }
    word(mask);
    debug_assert_eq!(frame.len(), FRAME_BYTES);
    frame.resize(FLOAT_AT, 0);
    frame.extend_from_slice(float);
    frame.resize(FLOAT_AT + 512, 0);
    // No extended state: the words that would announce one.
    frame[FLOAT_AT + 464..].fill(0);
    frame
}

/// The instructions in the scratch memory. `rbx` holds its beginning.
pub fn second_code(plan: &Plan) -> Vec<u8> {
    let mut code = Code::default();
    code.raw(&[0x48, 0x89, 0xc3]); // mov rbx, rax
    code.memory(&[0x48, 0x8d, 0xa3], scratch::STACK_TOP); // lea rsp, [rbx+…]
    code.call(scratch::ERRNO_LOCATION);
    code.store(scratch::ERRNO);
    code.raw(&[0x8b, 0x08]); // mov ecx, [rax]
    code.memory(&[0x89, 0x8b], scratch::ERRNO_BEFORE); // mov [rbx+…], ecx

    code.number(NR_MEMFD_CREATE);
    code.memory(&[0x48, 0x8d, 0xbb], scratch::MEMFD_NAME); // lea rdi, [rbx+…]
    code.memory(&[0x8b, 0xb3], scratch::MEMFD_FLAGS); // mov esi, [rbx+…]
    code.syscall();
    code.store(scratch::FD);
    code.raw(&[0x48, 0x85, 0xc0]); // test rax, rax
    let no_file = code.jump(&[0x0f, 0x88]); // js

    code.memory(&[0x48, 0x8d, 0xbb], scratch::PATH); // lea rdi, [rbx+…]
    code.raw(&[0xbe]); // mov esi, RTLD_NOW
    code.raw(&2_u32.to_le_bytes());
    code.call(scratch::DLOPEN);
    code.store(scratch::HANDLE);
    code.memory(&[0x48, 0x8b, 0xbb], scratch::FD); // mov rdi, [rbx+…]
    code.number(NR_CLOSE);
    code.syscall();
    code.memory(&[0x48, 0x83, 0xbb], scratch::HANDLE); // cmp qword [rbx+…], 0
    code.raw(&[0x00]);
    let not_loaded = code.jump(&[0x0f, 0x84]); // je

    code.memory(&[0x48, 0x8b, 0xbb], scratch::HANDLE); // mov rdi, [rbx+…]
    code.memory(&[0x48, 0x8d, 0xb3], scratch::SYMBOL); // lea rsi, [rbx+…]
    code.call(scratch::DLSYM);
    code.store(scratch::ENTRY);
    code.raw(&[0x48, 0x85, 0xc0]); // test rax, rax
    let no_entry = code.jump(&[0x0f, 0x84]); // jz
    code.raw(&[0xff, 0xd0]); // call rax
    code.store(scratch::RESULT);
    let done = code.jump(&[0xe9]); // jmp

    code.land(not_loaded);
    code.land(no_entry);
    code.memory(&[0x48, 0x83, 0xbb], scratch::DLERROR); // cmp qword [rbx+…], 0
    code.raw(&[0x00]);
    let no_words = code.jump(&[0x0f, 0x84]); // je
    code.call(scratch::DLERROR);
    code.store(scratch::ERROR);

    code.land(no_words);
    code.land(done);
    code.land(no_file);
    code.memory(&[0x48, 0x8b, 0x83], scratch::ERRNO); // mov rax, [rbx+…]
    code.memory(&[0x8b, 0x8b], scratch::ERRNO_BEFORE); // mov ecx, [rbx+…]
    code.raw(&[0x89, 0x08]); // mov [rax], ecx
    code.memory(&[0x48, 0x8b, 0xa3], scratch::FRAME); // mov rsp, [rbx+…]
    code.raw(&[0x48, 0x83, 0xc4, 0x08]); // add rsp, 8
    code.memory(&[0x48, 0x8b, 0x93], scratch::TAIL); // mov rdx, [rbx+…]
    code.raw(&[0x48, 0x89, 0xdf]); // mov rdi, rbx
    code.raw(&[0xbe]); // mov esi, size
    code.raw(&(scratch::BYTES as u32).to_le_bytes());
    code.number(NR_MUNMAP);
    code.raw(&[0xff, 0xe2]); // jmp rdx
    debug_assert_eq!(plan.tail, tail(plan.addresses.place));
    code.0
}

/// Instructions under way.
#[derive(Default)]
struct Code(Vec<u8>);

impl Code {
    fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// An instruction whose operand is a word of the scratch memory.
    fn memory(&mut self, instruction: &[u8], at: u32) {
        self.raw(instruction);
        self.raw(&at.to_le_bytes());
    }

    /// `mov eax, number`
    fn number(&mut self, number: u32) {
        self.raw(&[0xb8]);
        self.raw(&number.to_le_bytes());
    }

    fn syscall(&mut self) {
        self.raw(&[0x0f, 0x05]);
    }

    /// `call [rbx+at]`
    fn call(&mut self, at: u32) {
        self.memory(&[0xff, 0x93], at);
    }

    /// `mov [rbx+at], rax`
    fn store(&mut self, at: u32) {
        self.memory(&[0x48, 0x89, 0x83], at);
    }

    /// A jump whose distance is not known yet.
    fn jump(&mut self, instruction: &[u8]) -> usize {
        self.raw(instruction);
        self.raw(&[0; 4]);
        self.0.len()
    }

    /// Makes a jump lead here.
    fn land(&mut self, after_jump: usize) {
        let distance = (self.0.len() - after_jump) as u32;
        self.0[after_jump - 4..after_jump].copy_from_slice(&distance.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_up_code_of_this_very_program_is_known() {
        let own = crate::event::Pid(std::process::id() as i32);
        let bytes = std::fs::read(std::env::current_exe().expect("a path")).expect("own program");
        let entry = super::super::super::elf::entry(&bytes, 0).expect("an entry");
        let code = super::super::super::elf::bytes_at(&bytes, 0, entry, 32).expect("code");
        assert!(is_start_up_code(code), "{own}: {code:x?}");
        assert!(!is_start_up_code(&[0x90; 32]) && !is_start_up_code(&[]));
    }

    #[test]
    fn the_first_code_fits_and_its_jumps_land() {
        let code = first_code();
        assert!(code.len() <= 32, "{} bytes", code.len());
        // ja: to the push; je: to the push.
        assert_eq!(10 + code[9] as usize, 21);
        assert_eq!(16 + code[15] as usize, 21);
        assert_eq!(code[21], 0x6a);
        let (mmap, munmap, sigreturn) = stops(0);
        assert!(is_call_instruction(&code[mmap as usize - 2..mmap as usize]));
        assert!(is_call_instruction(&code[munmap as usize - 2..munmap as usize]));
        assert!(is_call_instruction(&code[sigreturn as usize - 2..sigreturn as usize]));
        assert_eq!(tail(0), munmap - 2);
    }

    #[test]
    fn a_call_is_made_again_on_the_way_back() {
        let mut registers = Registers::default();
        (registers.0.rax, registers.0.orig_rax, registers.0.rip) = ((-512_i64) as u64, 7, 1000);
        let word =
            |frame: &[u8], at: usize| u64::from_ne_bytes(frame[at..at + 8].try_into().expect("a word"));
        let built = frame(&registers, &[1; 512], 5, 4096);
        // After the return address and 40 bytes of the ucontext: rax is the 14th register, rip the 17th.
        assert_eq!((word(&built, 48 + 13 * 8), word(&built, 48 + 16 * 8)), (7, 998));
        assert_eq!((word(&built, FRAME_BYTES - 8), word(&built, 48 + 23 * 8)), (5, 4096 + FLOAT_AT as u64));
        registers.0.rax = (-516_i64) as u64;
        let built = frame(&registers, &[1; 512], 5, 4096);
        assert_eq!((word(&built, 48 + 13 * 8), word(&built, 48 + 16 * 8)), (7, 998));
    }
}
