//! rows
