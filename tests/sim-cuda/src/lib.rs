//! A simulated CUDA stack for tests.
