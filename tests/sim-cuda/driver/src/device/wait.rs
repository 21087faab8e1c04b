//! Host threads that wait for the devices.
//!
//! A spinning wait stays on its CPU, reading the clock, as the driver does by default. A blocking one sleeps in `poll`
//! on an eventfd, as the driver's does on its device file; the scheduler thread stands for the interrupt and wakes it.

use std::sync::atomic::{AtomicI32, Ordering};

use crate::clock;
use crate::config;
use crate::device::channel::{Mark, State, Work};
use crate::device::data::PLANE;
use crate::device::machine::{self, Machine};
use crate::device::threads;

/// How a thread waits: the context's or the event's scheduling flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Stays on the CPU.
    Spin,
    /// Stays runnable, but lets others on the CPU.
    Yield,
    /// Sleeps until woken.
    Block,
}

/// A thread that sleeps until its marks are reached.
pub struct Waiter {
    /// What it waits for.
    pub marks: Vec<Mark>,
    /// Where it sleeps.
    pub eventfd: i32,
}

/// Waits until the devices have come past these marks and the data are in place.
pub fn wait(marks: &[Mark], flavour: Flavour) {
    loop {
        let mut machine = machine::lock();
        let now = machine.advance();
        if machine.is_settled(marks) {
            return;
        }
        let until = machine.bound(marks, now);
        if flavour == Flavour::Block
            && let Some(eventfd) = eventfd()
        {
            machine.waiters.push(Waiter { marks: marks.to_vec(), eventfd });
            threads::wake_scheduler(&mut machine, until);
            drop(machine);
            sleep(eventfd);
            continue;
        }
        drop(machine);
        let until = if until == u64::MAX { now + 5_000 } else { until };
        if flavour == Flavour::Yield {
            while clock::now() < until {
                std::thread::yield_now();
            }
        } else {
            clock::spin_until(until);
        }
    }
}

/// The calling thread's eventfd. `None` if there is no descriptor left: then the wait spins.
fn eventfd() -> Option<i32> {
    struct Fd(AtomicI32);
    impl Drop for Fd {
        fn drop(&mut self) {
            let fd = self.0.load(Ordering::Relaxed);
            if fd >= 0 {
                // SAFETY: the descriptor is this thread's own; no waiter refers to it any more, since `wait` returned.
                unsafe { libc::close(fd) };
            }
        }
    }
    thread_local!(static FD: Fd = const { Fd(AtomicI32::new(-1)) });
    FD.try_with(|fd| {
        if fd.0.load(Ordering::Relaxed) < 0 {
            // SAFETY: no pointers.
            fd.0.store(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) }, Ordering::Relaxed);
        }
        fd.0.load(Ordering::Relaxed)
    })
    .ok()
    .filter(|fd| *fd >= 0)
}

fn sleep(eventfd: i32) {
    let mut poll = libc::pollfd { fd: eventfd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd. A signal may end the call early: then it polls again, for the waiter is registered.
    while unsafe { libc::poll(&raw mut poll, 1, -1) } != 1 {}
    let mut count = 0u64;
    // SAFETY: reads the eight bytes of an eventfd into a variable of that size.
    unsafe { libc::read(eventfd, (&raw mut count).cast(), 8) };
}

/// Wakes a thread that sleeps on this eventfd.
pub fn signal(eventfd: i32) {
    let one = 1u64;
    // SAFETY: writes the eight bytes of a variable to an eventfd.
    unsafe { libc::write(eventfd, (&raw const one).cast(), 8) };
}

impl Machine {
    /// The earliest time at which all these marks can have been reached, as far as is known now. `u64::MAX` if that
    /// depends on the host, which then says so.
    pub fn bound(&self, marks: &[Mark], now: u64) -> u64 {
        let bound = marks.iter().map(|mark| self.reach(*mark, now, true, 0)).max().unwrap_or(now);
        if bound == 0 && marks.iter().any(|mark| PLANE.done() < self.ticket(*mark)) {
            return u64::MAX;
        }
        // Where a bound cannot be told (long chains of channels), look again soon rather than at once.
        if bound <= now { now + 20_000 } else { bound }
    }

    /// The same for the start of one operation.
    pub fn start_bound(&self, mark: Mark, now: u64) -> u64 {
        self.reach(mark, now, false, 0)
    }

    /// When the devices reach the end (or the start) of the operation at a mark, at the earliest. 0 if it is past.
    fn reach(&self, mark: Mark, now: u64, to_end: bool, depth: u32) -> u64 {
        let Some(channel) = self.channels.get(&mark.channel) else { return 0 };
        if channel.done_seq >= mark.seq {
            return 0;
        }
        let Some(head) = channel.queue.front() else { return 0 };
        let gap = config::get().kernel_gap_ns;
        let (mut at, running) = match channel.state {
            State::Running(end) => (end, true),
            State::AwaitHost | State::AwaitPeers => return u64::MAX,
            State::AwaitReady(ready) => (ready, false),
            State::AwaitDep(dep) if depth < 16 => (self.reach(dep, now, true, depth + 1).max(now), false),
            State::AwaitEngine => (self.engine_bound(channel.device, &head.work, now), false),
            State::AwaitDep(_) | State::Idle => (now, false),
        };
        if at == u64::MAX {
            return at;
        }
        let mut after_work = running && head.work.is_device_work();
        for op in channel.queue.iter().skip(usize::from(running)).take_while(|op| op.seq <= mark.seq) {
            at = at.max(op.ready) + if after_work { gap } else { 0 };
            if op.seq < mark.seq || to_end {
                at += op.work.duration();
            }
            after_work = op.work.is_device_work();
        }
        at
    }

    fn engine_bound(&self, device: u32, work: &Work, now: u64) -> u64 {
        let same = |other: &Work| match (work, other) {
            (Work::Copy { engine: a, .. }, Work::Copy { engine: b, .. }) => a == b,
            (Work::Kernel { .. } | Work::Collective(_), Work::Kernel { .. } | Work::Collective(_)) => true,
            _ => false,
        };
        self.channels
            .values()
            .filter(|c| c.device == device && c.queue.front().is_some_and(|head| same(&head.work)))
            .filter_map(|c| if let State::Running(end) = c.state { Some(end) } else { None })
            .min()
            .unwrap_or(now)
    }
}
