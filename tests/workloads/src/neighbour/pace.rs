//! How loud is loud: about fifteen thousand rounds a second. That is several times what a busy data loader does, and less
//! than would only measure how fast events can be written.

use std::time::Duration;

/// Rounds without a pause.
const BURST: u32 = 32;
const PAUSE: Duration = Duration::from_millis(1);

/// Paces a loop.
pub struct Pace(u32);

impl Pace {
    pub fn new() -> Self {
        Self(0)
    }

    /// Once a round.
    pub fn step(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(BURST) {
            std::thread::sleep(PAUSE);
        }
    }
}
