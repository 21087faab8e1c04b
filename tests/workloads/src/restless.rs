//! A program that notices if anything of it is touched: `restless THREADS`.
//!
//! Threads that sleep, poll, read, wait for each other, take signals, start processes and use the GPU, each of which checks
//! what every call returns, how long it took and that `errno` stays what it was. Runs until standard input ends; then says
//! `RESTLESS ok …` or what was wrong.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::gpu::Gpu;

/// An error number that no call here returns.
const MARK: i32 = 77;
/// What a call may take longer than it should on a machine under load.
const SLACK: Duration = Duration::from_secs(20);

static SIGNALS: AtomicU64 = AtomicU64::new(0);

/// Runs it.
///
/// # Errors
/// Something was not as it should be.
pub fn run(arguments: &[String]) -> Result<()> {
    let threads: usize = arguments.first().map_or(Ok(16), |text| text.parse()).context("THREADS")?;
    let end = Arc::new(AtomicBool::new(false));
    block_alarms()?;
    let mut running: Vec<(&str, JoinHandle<Result<u64>>)> = Vec::new();
    let mut start = |name, body: fn(&AtomicBool) -> Result<u64>| {
        let end = Arc::clone(&end);
        running.push((name, std::thread::spawn(move || body(&end))));
    };
    start("gpu", gpu);
    start("signals", signals);
    start("processes", processes);
    for number in 0..threads.saturating_sub(3) {
        match number % 4 {
            0 => start("sleep", sleeps),
            1 => start("poll", polls),
            2 => start("pipe", pipe),
            _ => start("condition", condition),
        }
    }
    println!("READY {}", std::process::id());
    std::io::stdout().flush()?;
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest)?;
    end.store(true, Ordering::Relaxed);
    let mut rounds = 0;
    for (name, thread) in running {
        let done = thread.join().map_err(|_| anyhow::anyhow!("the thread `{name}` panicked"))?;
        rounds += done.with_context(|| format!("the thread `{name}`"))?;
    }
    println!("RESTLESS ok {rounds} rounds, {} signals", SIGNALS.load(Ordering::Relaxed));
    Ok(())
}

fn until(end: &AtomicBool, mut round: impl FnMut() -> Result<()>) -> Result<u64> {
    let mut rounds = 0;
    while !end.load(Ordering::Relaxed) {
        round()?;
        rounds += 1;
    }
    Ok(rounds)
}

/// Makes a call that succeeds, and checks that it leaves `errno` alone and took no less than `least`.
fn untouched(what: &str, least: Duration, call: impl FnOnce() -> i64) -> Result<i64> {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = MARK };
    let began = Instant::now();
    let result = call();
    // SAFETY: as above.
    let errno = unsafe { *libc::__errno_location() };
    let took = began.elapsed();
    ensure!(result >= 0 && errno == MARK, "{what} returned {result} with errno {errno}");
    ensure!(took >= least && took < least + SLACK, "{what} took {took:?} instead of {least:?}");
    Ok(result)
}

fn sleeps(end: &AtomicBool) -> Result<u64> {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 15_000_000 };
    until(end, || {
        let least = Duration::from_millis(15);
        untouched("nanosleep", least, || {
            // SAFETY: a time, and no place for the rest.
            unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) }.into()
        })?;
        Ok(())
    })
}

fn polls(end: &AtomicBool) -> Result<u64> {
    let (reader, _writer) = std::io::pipe()?;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&reader);
    until(end, || {
        let mut wanted = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let ready = untouched("poll", Duration::from_millis(15), || {
            // SAFETY: one structure.
            unsafe { libc::poll(&raw mut wanted, 1, 15) }.into()
        })?;
        ensure!(ready == 0 && wanted.revents == 0, "poll says {ready} ready");
        Ok(())
    })
}

/// A partner sends numbers; each must come, once and in order.
fn pipe(end: &AtomicBool) -> Result<u64> {
    let (mut reader, mut writer) = std::io::pipe()?;
    std::thread::spawn(move || {
        let mut number = 0_u64;
        while writer.write_all(&number.to_le_bytes()).is_ok() {
            number += 1;
            std::thread::sleep(Duration::from_millis(6));
        }
    });
    let mut expected = 0_u64;
    until(end, || {
        let mut bytes = [0; 8];
        reader.read_exact(&mut bytes)?;
        ensure!(
            u64::from_le_bytes(bytes) == expected,
            "{} came instead of {expected}",
            u64::from_le_bytes(bytes)
        );
        expected += 1;
        Ok(())
    })
}

/// Two threads that hand a number to and fro.
fn condition(end: &AtomicBool) -> Result<u64> {
    let shared = Arc::new((Mutex::new((0_u64, false)), Condvar::new()));
    let theirs = Arc::clone(&shared);
    let partner = std::thread::spawn(move || {
        let (lock, changed) = &*theirs;
        let Ok(mut state) = lock.lock() else { return };
        while !state.1 {
            if state.0 % 2 == 1 {
                state.0 += 1;
                changed.notify_one();
            }
            let Ok(next) = changed.wait(state) else { return };
            state = next;
        }
    });
    let (lock, changed) = &*shared;
    let poisoned = || anyhow::anyhow!("the partner panicked");
    let rounds = until(end, || {
        let mut state = lock.lock().map_err(|_| poisoned())?;
        let before = state.0;
        state.0 += 1;
        changed.notify_one();
        while state.0 % 2 == 1 {
            let (next, waited) = changed.wait_timeout(state, SLACK).map_err(|_| poisoned())?;
            ensure!(!waited.timed_out(), "the partner does not answer");
            state = next;
        }
        ensure!(state.0 == before + 2, "{} after {before}", state.0);
        drop(state);
        std::thread::sleep(Duration::from_millis(15));
        Ok(())
    });
    if let Ok(mut state) = lock.lock() {
        state.1 = true;
    }
    changed.notify_one();
    partner.join().map_err(|_| poisoned())?;
    rounds
}

extern "C" fn count_signal(_signal: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Only the thread that is made for them takes alarms: they would end the others' waits.
fn block_alarms() -> Result<()> {
    mask_alarms(libc::SIG_BLOCK)
}

fn mask_alarms(how: libc::c_int) -> Result<()> {
    // SAFETY: a set to fill, and the calling thread's mask.
    let result = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGALRM);
        libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut())
    };
    ensure!(result == 0, "pthread_sigmask says {result}");
    Ok(())
}

fn signals(end: &AtomicBool) -> Result<u64> {
    let every = libc::timeval { tv_sec: 0, tv_usec: 3_000 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the handler only adds to a number. The timer is ended below.
    unsafe {
        libc::signal(libc::SIGALRM, count_signal as *const () as libc::sighandler_t);
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
    mask_alarms(libc::SIG_UNBLOCK)?;
    let rounds = until(end, || {
        let before = SIGNALS.load(Ordering::Relaxed);
        // SAFETY: no preconditions.
        let result = unsafe { libc::pause() };
        let error = std::io::Error::last_os_error();
        ensure!(
            result == -1 && error.kind() == std::io::ErrorKind::Interrupted,
            "pause returned {result}, {error}"
        );
        ensure!(SIGNALS.load(Ordering::Relaxed) > before, "pause returned without a signal");
        Ok(())
    });
    // SAFETY: a structure of integers; all zeros ends the timer.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &std::mem::zeroed(), std::ptr::null_mut()) };
    rounds
}

fn processes(end: &AtomicBool) -> Result<u64> {
    until(end, || {
        let status = Command::new("/bin/true").stdin(Stdio::null()).status()?;
        ensure!(status.success(), "/bin/true ended with {status}");
        std::thread::sleep(Duration::from_millis(10));
        Ok(())
    })
}

fn gpu(end: &AtomicBool) -> Result<u64> {
    let gpu = Gpu::open()?;
    until(end, || {
        for _ in 0..8 {
            gpu.kernel(20_000)?;
        }
        gpu.synchronize()?;
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    })
}
