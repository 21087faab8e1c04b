//! The threads of the simulation.
//!
//! - `sim-gpu`: the scheduler. Sleeps until the earliest time at which a blocked thread can be released, a host function
//!   can be called or a large copy can start; does nothing if there is none of them. Its wake-ups stand for the device's
//!   interrupts.
//! - `cuda-EvtHandlr`: calls host functions, as the real driver's thread of that name does.
//! - `sim-gpu-dma`: moves large blocks of data (`data`).
//!
//! All have their signals blocked, so that a program's signal handlers never run in them.

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::clock;
use crate::device::data::PLANE;
use crate::device::machine;
use crate::device::wait;
use crate::hook;

static SCHEDULER: Condvar = Condvar::new();
static HOST: Condvar = Condvar::new();
static HOST_WORK: Mutex<bool> = Mutex::new(false);

/// Starts a thread of the driver.
pub fn spawn(name: &'static str, body: impl FnOnce() + Send + 'static) {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are valid for the calls to fill; the mask is put back below. A new thread inherits it.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        // SAFETY: no pointers. A timer slack of 1 ns: the default lets a sleep overrun by 50 µs.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        body();
    });
    // SAFETY: the mask that was saved above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    if let Err(error) = started {
        eprintln!("simulated CUDA: cannot start the thread {name}: {error}");
    }
}

/// Starts the scheduler, once.
pub fn start() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| spawn("sim-gpu", schedule));
}

/// Makes the scheduler look again. Called under the machine's lock.
pub fn wake_scheduler() {
    start();
    SCHEDULER.notify_one();
}

/// A large data job is done: waiters may be free.
pub fn data_moved() {
    let machine = machine::lock();
    if !machine.waiters.is_empty() {
        wake_scheduler();
    }
}

/// Host functions are due. Called under the machine's lock.
pub fn wake_host_thread() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| spawn("cuda-EvtHandlr", call_host_functions));
    *HOST_WORK.lock().unwrap_or_else(PoisonError::into_inner) = true;
    HOST.notify_one();
}

fn schedule() {
    let mut machine = machine::lock();
    loop {
        machine.alarm = 0;
        let now = machine.advance();
        let waiters = std::mem::take(&mut machine.waiters);
        let (free, waiting): (Vec<_>, Vec<_>) =
            waiters.into_iter().partition(|w| machine.is_settled(&w.marks));
        machine.waiters = waiting;
        for waiter in free {
            wait::signal(waiter.eventfd);
        }
        let waits = machine.waiters.iter().map(|w| machine.bound(&w.marks, now));
        let alarms = machine.channels.iter().filter_map(|(key, c)| {
            let mark = crate::device::channel::Mark { channel: *key, seq: *c.alarms.front()? };
            Some(machine.start_bound(mark, now).max(now + 1_000))
        });
        let until = waits.chain(alarms).min().unwrap_or(u64::MAX);
        machine.alarm = until;
        machine = if until == u64::MAX {
            SCHEDULER.wait(machine).unwrap_or_else(PoisonError::into_inner)
        } else {
            let left = Duration::from_nanos(until.saturating_sub(clock::now()));
            SCHEDULER.wait_timeout(machine, left).unwrap_or_else(PoisonError::into_inner).0
        };
    }
}

fn call_host_functions() {
    loop {
        let mut work = HOST_WORK.lock().unwrap_or_else(PoisonError::into_inner);
        while !*work {
            work = HOST.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        *work = false;
        drop(work);
        loop {
            let Some(job) = machine::lock().host_jobs.pop_front() else { break };
            PLANE.wait_for(job.ticket);
            let start = hook::clock();
            // SAFETY: the caller of `cuLaunchHostFunc` promised that function and argument are valid until here.
            unsafe { (job.call.function)(job.call.user) };
            hook::host_launch(&job.call.info, start);
            let mut machine = machine::lock();
            machine.host_done(job.mark);
            wake_scheduler();
        }
    }
}
