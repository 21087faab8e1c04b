//! TCP traffic that nobody waits for.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use super::pace::Pace;
use crate::cpu;

/// A connection to ourselves.
pub struct Chatter {
    here: TcpStream,
    there: TcpStream,
}

impl Chatter {
    /// Connects.
    ///
    /// # Errors
    /// There is no loopback interface.
    pub fn new() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on the loopback interface")?;
        let here = TcpStream::connect(listener.local_addr()?).context("cannot connect to ourselves")?;
        let (there, _) = listener.accept()?;
        here.set_nodelay(true)?;
        there.set_nodelay(true)?;
        Ok(Self { here, there })
    }

    /// Runs until `end`: small messages back and forth between two threads.
    pub fn run(mut self, end: &AtomicBool) {
        let mut there = self.there;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                cpu::pin(cpu::elsewhere());
                let mut message = [0; 64];
                while there.read_exact(&mut message).is_ok() && there.write_all(&message).is_ok() {}
            });
            let mut message = [7; 64];
            let mut pace = Pace::new();
            while !end.load(Ordering::Relaxed) {
                pace.step();
                if self.here.write_all(&message).is_err() || self.here.read_exact(&mut message).is_err() {
                    break;
                }
            }
            let _ = self.here.shutdown(std::net::Shutdown::Both);
        });
    }
}
