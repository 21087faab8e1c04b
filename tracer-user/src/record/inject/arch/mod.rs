//! What depends on the processor: registers, the instructions that load the library, the way back.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

/// Elsewhere nothing is entered: this says so, and the rest of the module compiles.
#[cfg(not(target_arch = "x86_64"))]
mod none;
#[cfg(not(target_arch = "x86_64"))]
pub use none::*;
