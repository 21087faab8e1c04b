//! The GPU side: finds the rings of shims and turns their records into rows.
