//! Two to five causes in one program, each at the end of a chain of up to five threads and processes, at random in each
//! round, on one to four GPUs. All of it follows from the seed, so that the same scenario can be run again without one of
//! its causes.

mod chain;
mod deed;
mod plan;

use anyhow::{Result, bail};

use crate::clock::now_ns;
use crate::cpu;
use crate::gpu::Gpu;
use crate::stage::{Options, Stage};
use chain::{Job, Link};
use plan::{Deed, Dice, Plan};

pub use chain::work;

/// Bytes copied at a time, for each unit of size.
const COPIED: usize = 2 << 20;

pub fn run(options: &Options) -> Result<()> {
    let plan = Plan::of_seed(options.seed);
    if let Some(name) = &options.without
        && !plan.causes.iter().any(|cause| cause.deed.name() == name)
    {
        bail!("scenario {} has no cause `{name}`", options.seed);
    }
    let is_idle = |deed: Deed| options.without.as_deref() == Some(deed.name());
    let mut links = Vec::new();
    for (number, cause) in plan.causes.iter().enumerate() {
        let job =
            Job { seed: options.seed, cause: number, data: options.data.clone(), idle: is_idle(cause.deed) };
        links.push(if chain::is_launchers(cause.deed) { None } else { Some(Link::new(&job, 0)?) });
    }
    let stage = Stage::open(options)?;
    let mut others = Vec::new();
    for device in 1..(plan.devices as i32).min(Gpu::count()?) {
        others.push(Gpu::open_device(device)?);
    }
    stage.gpu.make_current()?;
    let from = vec![1_u8; 12 * COPIED];
    let to = stage.gpu.alloc(from.len())?;
    // The driver makes its staging buffer, and threads for it, at the first copy.
    stage.gpu.copy_pageable(to, &from)?;
    let mut dice = Dice::new(options.seed ^ 0x5EED);
    stage.pinned().rounds(|stage, _| {
        for gpu in std::iter::once(&stage.gpu).chain(&others) {
            gpu.make_current()?;
            gpu.kernel(plan.work_us * 1000)?;
        }
        // The dice fall the same way with and without a cause.
        let drained = dice.between(0, 1) == 0;
        let mut order: Vec<usize> = (0..plan.causes.len()).collect();
        for index in 0..order.len() {
            let other = dice.between(0, plan.causes.len() as u64 - 1) as usize;
            order.swap(index, other);
        }
        let now: Vec<bool> = plan.causes.iter().map(|cause| dice.between(1, 100) <= cause.chance).collect();
        if drained {
            for gpu in std::iter::once(&stage.gpu).chain(&others) {
                gpu.make_current()?;
                gpu.synchronize()?;
            }
        }
        stage.gpu.make_current()?;
        for number in order.into_iter().filter(|&number| now[number]) {
            let cause = &plan.causes[number];
            match &mut links[number] {
                Some(link) => link.act(&mut stage.truth)?,
                None if is_idle(cause.deed) => {}
                None => {
                    let delay = cpu::run_delay_ns();
                    let start = now_ns();
                    stage.gpu.copy_pageable(to, &from[..cause.size as usize * COPIED])?;
                    let end = now_ns();
                    stage.truth.planted(start, end, &["copy.pageable"], None);
                    stage.truth.by(cause.deed.name());
                    deed::mark_if_disturbed(&mut stage.truth, end - start, delay);
                }
            }
        }
        Ok(())
    })?;
    for gpu in &others {
        gpu.make_current()?;
        gpu.kernel(plan.work_us * 1000)?;
        gpu.synchronize()?;
    }
    links.into_iter().flatten().try_for_each(Link::end)
}
