//! Newtypes for every unit and handle that the tables and the attribution use.

mod ids;
mod text;
mod time;

pub use ids::{ContextId, CorrelationId, DeviceId, GapId, OpId, Pid, RequestId, RowId, StreamId, Tid};
pub use text::{Recent, Text};
pub use time::{CLOCK_NOISE, DurationNs, Interval, MonoNs};
