//! CUPTI's thread: gives full buffers back, and keeps the flush period.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::buffer::{self, Which};
use crate::driver;

static PERIOD_MS: AtomicU32 = AtomicU32::new(0);
static AWAKE: Mutex<bool> = Mutex::new(false);
static WAKE: Condvar = Condvar::new();

/// How often to look while full buffers wait for their last records.
const POLL: Duration = Duration::from_millis(5);

/// Sets the flush period; 0: none.
pub fn set_period(ms: u32) {
    PERIOD_MS.store(ms, Ordering::Relaxed);
    start();
    wake();
}

/// Starts the thread, once. It has all signals blocked, so that a program's handlers never run in it.
pub fn start() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: both sets are valid for the calls to fill; the mask is put back below. A new thread inherits it.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        }
        let started = std::thread::Builder::new().name("cupti-worker".to_owned()).spawn(work);
        // SAFETY: the mask that was saved above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
        if let Err(error) = started {
            eprintln!("simulated CUPTI: cannot start its thread: {error}");
        }
    });
}

/// A buffer is full, or complete.
pub fn wake() {
    *AWAKE.lock().unwrap_or_else(PoisonError::into_inner) = true;
    WAKE.notify_one();
}

fn work() {
    let mut left = false;
    loop {
        let mut awake = AWAKE.lock().unwrap_or_else(PoisonError::into_inner);
        let period = PERIOD_MS.load(Ordering::Relaxed);
        while !*awake {
            let sleep = match (left, period) {
                (true, _) => Some(POLL),
                (false, 0) => None,
                (false, ms) => Some(Duration::from_millis(u64::from(ms))),
            };
            match sleep {
                None => awake = WAKE.wait(awake).unwrap_or_else(PoisonError::into_inner),
                Some(time) => {
                    awake = WAKE.wait_timeout(awake, time).unwrap_or_else(PoisonError::into_inner).0;
                    break;
                }
            }
        }
        *awake = false;
        drop(awake);
        if let Ok(table) = driver::table() {
            (table.advance)();
        }
        left = buffer::give_back(Which::Full);
    }
}
