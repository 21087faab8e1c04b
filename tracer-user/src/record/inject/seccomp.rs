//! Whether a process's system-call filters would kill it for what loading a library does.
//!
//! The filters are classic BPF programs (`linux/filter.h`), which root may read (`PTRACE_SECCOMP_GET_FILTER`, 4.4 and
//! later, where the kernel has `CONFIG_CHECKPOINT_RESTORE`). They are run here on the calls in question.

/// One instruction (`struct sock_filter`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// Instructions to skip if a condition holds.
    pub jt: u8,
    /// Or does not.
    pub jf: u8,
    /// A number.
    pub k: u32,
}

/// `SECCOMP_RET_ACTION_FULL`.
const ACTION: u32 = 0xffff_0000;
const RET_ERRNO: u32 = 0x0005_0000;
const RET_LOG: u32 = 0x7ffc_0000;
const RET_ALLOW: u32 = 0x7fff_0000;

/// `struct seccomp_data`: number, architecture, instruction pointer, six arguments.
fn data(number: u32, arch: u32) -> [u32; 16] {
    let mut words = [0; 16];
    (words[0], words[1]) = (number, arch);
    words
}

/// Whether a call gets past a filter alive: allowed, logged, or refused with an error. An invalid filter does not.
pub fn survives(filter: &[Instruction], number: u32, arch: u32) -> bool {
    let Some(verdict) = run(filter, &data(number, arch)) else { return false };
    matches!(verdict & ACTION, RET_ALLOW | RET_LOG | RET_ERRNO)
}

/// The filter's return value.
fn run(filter: &[Instruction], data: &[u32; 16]) -> Option<u32> {
    let (mut a, mut x, mut memory) = (0_u32, 0_u32, [0_u32; 16]);
    let mut at = 0_usize;
    // Jumps only go forwards.
    while let Some(&Instruction { code, jt, jf, k }) = filter.get(at) {
        at += 1;
        let slot = k as usize;
        let jump = |holds: bool| usize::from(if holds { jt } else { jf });
        match code {
            // ld: word of the data, number, memory, length
            0x20 => a = *data.get(slot / 4).filter(|_| slot.is_multiple_of(4))?,
            0x00 => a = k,
            0x60 => a = *memory.get(slot)?,
            0x80 => a = 64,
            // ldx
            0x01 => x = k,
            0x61 => x = *memory.get(slot)?,
            0x81 => x = 64,
            // st, stx
            0x02 => *memory.get_mut(slot)? = a,
            0x03 => *memory.get_mut(slot)? = x,
            // alu with a number, or with x
            0x04 => a = a.wrapping_add(k),
            0x0c => a = a.wrapping_add(x),
            0x14 => a = a.wrapping_sub(k),
            0x1c => a = a.wrapping_sub(x),
            0x24 => a = a.wrapping_mul(k),
            0x2c => a = a.wrapping_mul(x),
            0x34 => a = a.checked_div(k)?,
            0x3c => a = a.checked_div(x)?,
            0x44 => a |= k,
            0x4c => a |= x,
            0x54 => a &= k,
            0x5c => a &= x,
            0x64 => a = a.checked_shl(k).unwrap_or(0),
            0x6c => a = a.checked_shl(x).unwrap_or(0),
            0x74 => a = a.checked_shr(k).unwrap_or(0),
            0x7c => a = a.checked_shr(x).unwrap_or(0),
            0x84 => a = a.wrapping_neg(),
            0xa4 => a ^= k,
            0xac => a ^= x,
            // jmp
            0x05 => at = at.checked_add(slot)?,
            0x15 => at += jump(a == k),
            0x1d => at += jump(a == x),
            0x25 => at += jump(a > k),
            0x2d => at += jump(a > x),
            0x35 => at += jump(a >= k),
            0x3d => at += jump(a >= x),
            0x45 => at += jump(a & k != 0),
            0x4d => at += jump(a & x != 0),
            // ret
            0x06 => return Some(k),
            0x16 => return Some(a),
            // misc
            0x07 => x = a,
            0x87 => a = x,
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARCH: u32 = 0xc000_003e;
    const KILL: u32 = 0x8000_0000;

    fn op(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
        Instruction { code, jt, jf, k }
    }

    /// Kills another architecture and call 5, answers call 6 with an error, allows the rest.
    fn filter() -> Vec<Instruction> {
        vec![
            op(0x20, 0, 0, 4),
            op(0x15, 1, 0, ARCH),
            op(0x06, 0, 0, KILL),
            op(0x20, 0, 0, 0),
            op(0x15, 0, 1, 5),
            op(0x06, 0, 0, KILL),
            op(0x15, 0, 1, 6),
            op(0x06, 0, 0, RET_ERRNO | 1),
            op(0x06, 0, 0, RET_ALLOW),
        ]
    }

    #[test]
    fn a_filter_is_run_as_the_kernel_does() {
        assert!(survives(&filter(), 4, ARCH));
        assert!(!survives(&filter(), 5, ARCH));
        assert!(survives(&filter(), 6, ARCH));
        assert!(!survives(&filter(), 4, 0x4000_0003));
    }

    #[test]
    fn what_is_no_filter_is_not_trusted() {
        assert!(!survives(&[], 0, ARCH));
        assert!(!survives(&[op(0x20, 0, 0, 64)], 0, ARCH));
        assert!(!survives(&[op(0x05, 0, 0, u32::MAX), op(0x06, 0, 0, RET_ALLOW)], 0, ARCH));
        assert!(!survives(&[op(0xff, 0, 0, 0)], 0, ARCH));
    }
}
