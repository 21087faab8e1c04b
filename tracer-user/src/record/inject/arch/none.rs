//! A processor for which there are no instructions yet.

use super::super::scratch::Plan;
use super::super::target::Addresses;

/// Never.
pub const SUPPORTED: bool = false;
/// Named in the refusal.
pub const NAME: &str = std::env::consts::ARCH;
/// None.
pub const SAFE_CALLS: &[i64] = &[];
/// None.
pub const LAST_RESORT_CALLS: &[i64] = &[];
/// None.
pub const NEEDED_CALLS: &[u32] = &[];
/// None.
pub const AUDIT_ARCH: u32 = 0;

/// Registers of a stopped thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers;

#[allow(clippy::unused_self, reason = "the shape of the supported processors")]
impl Registers {
    /// Bytes of the kernel's structure.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut []
    }
    /// The same, to read.
    pub fn bytes(&self) -> &[u8] {
        &[]
    }
    /// Whether the thread was stopped inside a system call that goes on afterwards.
    pub fn in_restartable_call(&self) -> bool {
        false
    }
    /// The stack pointer.
    pub fn stack(&self) -> u64 {
        0
    }
    /// The address of the instruction that made the call.
    pub fn call_instruction(&self) -> u64 {
        0
    }
    /// Makes the present call none.
    pub fn skip_call(&mut self) {}
}

/// Whether code is the C library's start-up code.
pub fn is_start_up_code(_code: &[u8]) -> bool {
    false
}

/// Whether bytes are the instruction that makes a system call.
pub fn is_call_instruction(_code: &[u8]) -> bool {
    false
}

/// The first instructions.
pub fn first_code() -> Vec<u8> {
    Vec::new()
}

/// The frame with which the thread would come back by itself.
pub fn frame(_registers: &Registers, _float: &[u8], _mask: u64, _address: u64) -> Vec<u8> {
    Vec::new()
}

/// Registers with which the first instructions begin.
pub fn begin(registers: &Registers, _addresses: &Addresses, _frame: u64) -> Registers {
    *registers
}

/// The instructions in the scratch memory.
pub fn second_code(_plan: &Plan) -> Vec<u8> {
    Vec::new()
}

/// Where the first instructions map, free, and return: instruction pointers at the stops of these calls.
pub fn stops(_place: u64) -> (u64, u64, u64) {
    (0, 0, 0)
}

/// The address from which the scratch memory is freed.
pub fn tail(_place: u64) -> u64 {
    0
}
