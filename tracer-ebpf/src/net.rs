//! The network: which connection's packet is being delivered in this softirq.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use tracer_abi::kernel::{LossClass, RecordKind, RetransmitRecord, SocketAddresses};

use crate::config::off;
use crate::{cpu, emit, kernel};

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// Writes the addresses of a socket; family 0 if it is no internet socket.
///
/// # Safety
/// `out` is writable; `sock` is the address of a `struct sock`.
#[inline(always)]
pub unsafe fn addresses(sock: u64, out: *mut SocketAddresses) {
    let family: u16 = kernel::field(sock, off!(sock_family));
    // SAFETY: by the contract.
    unsafe {
        (*out).family = 0;
        (*out).reserved = 0;
        if family == AF_INET {
            let local: [u8; 4] = kernel::field(sock, off!(sock_rcv_saddr));
            let peer: [u8; 4] = kernel::field(sock, off!(sock_daddr));
            (*out).local = [0; 16];
            (*out).peer = [0; 16];
            (&raw mut (*out).local).cast::<[u8; 4]>().write(local);
            (&raw mut (*out).peer).cast::<[u8; 4]>().write(peer);
        } else if family == AF_INET6 {
            (*out).local = kernel::field(sock, off!(sock_v6_rcv_saddr));
            (*out).peer = kernel::field(sock, off!(sock_v6_daddr));
        } else {
            return;
        }
        // The local port is kept in host order, the peer's in network order.
        (*out).local_port = kernel::field(sock, off!(sock_num));
        (*out).peer_port = u16::from_be(kernel::field(sock, off!(sock_dport)));
        (*out).family = family;
    }
}

#[inline(always)]
fn deliver(sock: u64) {
    if let Some(frame) = cpu::top_frame() {
        // SAFETY: this CPU's element of the map; the tracepoint passes a socket.
        unsafe { addresses(sock, &raw mut (*frame).socket) };
    }
}

/// A packet of an established connection, before the socket's reader is woken.
#[raw_tracepoint(tracepoint = "tcp_probe")]
pub fn tcp_probe(ctx: RawTracePointContext) -> i32 {
    deliver(ctx.arg(0));
    0
}

/// A connection changes its state: what wakes `accept` and `connect`, which `tcp_probe` does not see.
#[raw_tracepoint(tracepoint = "inet_sock_set_state")]
pub fn inet_sock_set_state(ctx: RawTracePointContext) -> i32 {
    deliver(ctx.arg(0));
    0
}

/// A segment is sent again: it, or its acknowledgement, was lost or late.
#[raw_tracepoint(tracepoint = "tcp_retransmit_skb")]
pub fn tcp_retransmit_skb(ctx: RawTracePointContext) -> i32 {
    let Some(mut entry) = emit::reserve::<RetransmitRecord>(LossClass::RingOther) else { return 0 };
    let record = entry.as_mut_ptr();
    // SAFETY: room for a record in the ring; the tracepoint passes a socket.
    unsafe {
        (*record).header = emit::header(RecordKind::Retransmit, kernel::now_ns());
        (*record).reserved = 0;
        addresses(ctx.arg(0), &raw mut (*record).addresses);
    }
    emit::submit(entry);
    0
}

/// The next packet: what was delivered before is over. A softirq handles many packets, and those of other protocols
/// have no tracepoint of their own.
#[raw_tracepoint(tracepoint = "netif_receive_skb")]
pub fn netif_receive_skb(_ctx: RawTracePointContext) -> i32 {
    if let Some(frame) = cpu::top_frame() {
        // SAFETY: this CPU's element of the map.
        unsafe { (*frame).socket.family = 0 };
    }
    0
}
