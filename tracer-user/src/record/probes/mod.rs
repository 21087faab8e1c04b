//! The kernel side: loads the eBPF programs and hands out their records.
