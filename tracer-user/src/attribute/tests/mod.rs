//! Hand-made timelines for each rule and trap, and random ones for what must hold whatever the timeline.

mod collective;
mod golden;
mod gpu;
mod hard;
mod host;
mod lost;
mod misdiagnosed;
mod properties;
mod roles;
mod samples;
mod scene;
mod storage;
mod taken;
mod what_if;
