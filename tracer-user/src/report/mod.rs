//! What a recording says: the report, and the explanation of one gap.

pub mod escape;
