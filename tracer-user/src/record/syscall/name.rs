//! Names of system calls on the architecture that this is built for; the numbers differ between architectures, so
//! everything else in gtrace goes by name.

use std::cell::RefCell;
use std::collections::HashMap;

use syscalls::Sysno;

use crate::event::Text;

thread_local! {
    static NAMES: RefCell<HashMap<i32, Text>> = RefCell::default();
}

/// The call's name; one newer than this program's table reads `syscall_463`.
#[must_use]
pub fn name(number: i32) -> Text {
    NAMES.with_borrow_mut(|names| {
        // Bounded: numbers come from the kernel, but a caller may pass any.
        if names.len() > 4096 {
            names.clear();
        }
        names.entry(number).or_insert_with(|| make_name(number)).clone()
    })
}

fn make_name(number: i32) -> Text {
    match usize::try_from(number).ok().and_then(Sysno::new) {
        Some(call) => Text::from(call.name()),
        None => Text::from(format!("syscall_{number}")),
    }
}

/// The number of a call by its name; `None` where this architecture has no such call.
#[must_use]
pub fn number_of(name: &str) -> Option<i32> {
    name.parse::<Sysno>().ok().map(|call| call.id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree_with_libc() {
        assert_eq!(name(libc::SYS_read as i32).as_str(), "read");
        assert_eq!(name(libc::SYS_futex as i32).as_str(), "futex");
        assert_eq!(name(libc::SYS_io_uring_enter as i32).as_str(), "io_uring_enter");
        assert_eq!(name(99_999).as_str(), "syscall_99999");
        assert_eq!(name(-1).as_str(), "syscall_-1");
        assert_eq!(number_of("pread64"), Some(libc::SYS_pread64 as i32));
        assert_eq!(number_of("no_such_call"), None);
    }
}
