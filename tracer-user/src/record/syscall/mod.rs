//! System calls: numbers to names, and what their arguments mean.

mod meaning;
mod name;

pub use meaning::{Meaning, Operand, meaning};
pub use name::{name, number_of};
