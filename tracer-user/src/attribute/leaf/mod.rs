//! Where chains end, one file a family of causes.

pub mod collective;
pub mod copy;
pub mod cpu;
pub mod gpu;
pub mod network;
pub mod runq;
pub mod storage;
pub mod timer;
pub mod traced;
pub mod wait;
