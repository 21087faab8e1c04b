//! The main thread sleeps.

use std::time::Duration;

use anyhow::Result;

use crate::clock::now_ns;
use crate::stage::{Options, Stage};

const SLEEP: Duration = Duration::from_millis(25);

pub fn run(options: &Options) -> Result<()> {
    Stage::open(options)?.pinned().play(|stage| {
        let start = now_ns();
        std::thread::sleep(SLEEP);
        stage.truth.planted(start, now_ns(), &["host.sleep"], None);
        Ok(())
    })
}
