//! The threads of the simulation.
//!
//! - `sim-gpu`: the scheduler. Sleeps on a timer until the earliest time at which a blocked thread can be released, a host function
//!   can be called or a large copy can start; does nothing if there is none of them. Its wake-ups stand for the device's
//!   interrupts.
//! - `cuda-EvtHandlr`: calls host functions, as the real driver's thread of that name does.
//! - `sim-gpu-dma`: moves large blocks of data (`data`).
//! - `sim-gpu-link`: hears, for each communicator of the simulated NCCL, that kernels of all ranks have started.
//!
//! All have their signals blocked, so that a program's signal handlers never run in them.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::device::channel::Mark;
use crate::device::data::PLANE;
use crate::device::machine::{self, Machine};
use crate::device::wait;
use crate::hook;

static TIMER: AtomicI32 = AtomicI32::new(-1);
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
    STARTED.get_or_init(|| {
        // SAFETY: no pointers.
        let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
        TIMER.store(timer, Ordering::Release);
        spawn("sim-gpu", schedule);
    });
}

/// Makes the scheduler look at `at`, if it would only do so later. `u64::MAX`: never mind.
///
/// The timer is set from here, so that the thread is woken once, when there is something to do, and not before to be
/// told of it.
pub fn wake_scheduler(machine: &mut Machine, at: u64) {
    if at == u64::MAX || (machine.alarm != 0 && machine.alarm <= at) {
        return;
    }
    start();
    machine.alarm = at.max(1);
    set_timer(machine.alarm);
}

/// Sets the timer to a time of CLOCK_MONOTONIC, 0: off.
fn set_timer(at: u64) {
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let value = libc::timespec { tv_sec: (at / 1_000_000_000) as _, tv_nsec: (at % 1_000_000_000) as _ };
    let setting = libc::itimerspec { it_interval: none, it_value: value };
    let timer = TIMER.load(Ordering::Acquire);
    // SAFETY: a timer of this process and a valid setting.
    unsafe {
        libc::timerfd_settime(timer, libc::TFD_TIMER_ABSTIME, &raw const setting, std::ptr::null_mut())
    };
}

/// A large data job is done: waiters may be free.
pub fn data_moved() {
    let mut machine = machine::lock();
    if !machine.waiters.is_empty() {
        wake_scheduler(&mut machine, 1);
    }
}

/// Starts to listen to a bell: a word in memory that the ranks of a communicator share.
pub fn watch_bell(bell: &'static AtomicU32) {
    spawn("sim-gpu-link", move || {
        let mut seen = 0;
        loop {
            let now = bell.load(Ordering::Acquire);
            if now == seen {
                // SAFETY: an address that lives as long as the process and a number; no time limit.
                unsafe { libc::syscall(libc::SYS_futex, bell.as_ptr(), libc::FUTEX_WAIT, seen, 0usize) };
                continue;
            }
            seen = now;
            let mut machine = machine::lock();
            machine.advance();
            // What follows in the streams has times now, and waiters may be free.
            wake_scheduler(&mut machine, 1);
        }
    });
}

/// Host functions are due. Called under the machine's lock.
pub fn wake_host_thread() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| spawn("cuda-EvtHandlr", call_host_functions));
    *HOST_WORK.lock().unwrap_or_else(PoisonError::into_inner) = true;
    HOST.notify_one();
}

fn schedule() {
    loop {
        let mut expirations = 0u64;
        let timer = TIMER.load(Ordering::Acquire);
        // SAFETY: reads the eight bytes of a timer into a variable of that size.
        if unsafe { libc::read(timer, (&raw mut expirations).cast(), 8) } != 8 {
            // Without a descriptor for the timer (the process has none left) look now and then.
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut machine = machine::lock();
        let now = machine.advance();
        let waiters = std::mem::take(&mut machine.waiters);
        let (free, waiting): (Vec<_>, Vec<_>) =
            waiters.into_iter().partition(|w| machine.is_settled(&w.marks));
        machine.waiters = waiting;
        let waits = machine.waiters.iter().map(|w| machine.bound(&w.marks, now));
        let alarms = machine.channels.iter().filter_map(|(key, c)| {
            let mark = Mark { channel: *key, seq: *c.alarms.front()? };
            Some(machine.start_bound(mark, now).max(now + 1_000))
        });
        let until = waits.chain(alarms).min().unwrap_or(u64::MAX);
        machine.alarm = 0;
        wake_scheduler(&mut machine, until);
        drop(machine);
        for waiter in free {
            wait::signal(waiter.eventfd);
        }
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
            wake_scheduler(&mut machine, 1);
        }
    }
}
