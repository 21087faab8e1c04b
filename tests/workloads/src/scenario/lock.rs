//! The main thread wants a lock that another thread of the process holds while it computes. The lock is only where the
//! main thread waits; the cause is what its holder does.

use std::sync::{Mutex, PoisonError, mpsc};

use anyhow::{Context, Result};

use crate::clock::now_ns;
use crate::cpu;
use crate::stage::{Options, Stage};
use crate::truth::Truth;

const HOLD_NS: i64 = 25_000_000;

pub fn run(options: &Options) -> Result<()> {
    let lock = &Mutex::new(());
    let (ask, asked) = mpsc::channel::<()>();
    let (say, held) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let holder = std::thread::Builder::new().name("holder".into());
        let holder = holder
            .spawn_scoped(scope, move || hold(lock, &asked, &say))
            .context("cannot start the holder")?;
        let played = Stage::open(options)?.play(|_| {
            ask.send(()).context("the holder has ended")?;
            held.recv().context("the holder has ended")?;
            drop(lock.lock().unwrap_or_else(PoisonError::into_inner));
            Ok(())
        });
        drop(ask);
        holder.join().map_err(|_| anyhow::anyhow!("the holder panicked"))??;
        played
    })
}

/// The holder: takes the lock, says so, computes, lets go.
fn hold(lock: &Mutex<()>, asked: &mpsc::Receiver<()>, say: &mpsc::Sender<()>) -> Result<()> {
    cpu::pin(cpu::stage());
    let mut truth = Truth::from_environment();
    while asked.recv().is_ok() {
        let held = lock.lock().unwrap_or_else(PoisonError::into_inner);
        if say.send(()).is_err() {
            break;
        }
        cpu::let_them_block();
        let start = now_ns();
        cpu::burn(HOLD_NS);
        truth.planted(start, now_ns(), &["host.cpu.user"], None);
        drop(held);
    }
    truth.write()
}
