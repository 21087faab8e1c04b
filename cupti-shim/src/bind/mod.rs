//! Finds the CUPTI that the process already has, and its functions.

mod find;
mod mapped;
mod table;

pub use find::{Bound, Refusal, bind};
pub use mapped::mapped_objects;
pub use table::{
    BufferCompleted, BufferRequested, CallbackFunction, Cupti, ResultCode, SUCCESS, StateData,
    SubscriberHandle, SubscriberParams, result_name,
};
