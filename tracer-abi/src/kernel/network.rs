//! What happened to connections beside packets that came.

use super::{RecordHeader, SocketAddresses};

/// A segment of a TCP connection was sent again.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RetransmitRecord {
    pub header: RecordHeader,
    pub addresses: SocketAddresses,
    pub reserved: u32,
}
