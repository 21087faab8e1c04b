//! Sockets.

use super::{Entry, Remedy};

/// Advice for them.
pub const REMEDIES: &[Entry] = &[
    (
        "net.accept",
        None,
        Remedy {
            change: &["nothing, if the server is meant to be idle; else send it more requests at a time"],
            disproof: "look at the clients: if requests were waiting there, the server is not the idle one",
        },
    ),
    (
        "net.dns",
        None,
        Remedy {
            change: &["cache look-ups (nscd, systemd-resolved) or keep connections open"],
            disproof: "put the name into /etc/hosts: if the waiting stays, it was not the look-up",
        },
    ),
    (
        "net.retransmit",
        None,
        Remedy {
            change: &[
                "look for loss on the path: nstat -az TcpRetransSegs, ethtool -S on both ends and on the switch, ss -ti to the peer",
            ],
            disproof: "ping the peer with the same size of packets: if none is lost and none is late, the peer itself answers late",
        },
    ),
    (
        "net",
        None,
        Remedy {
            change: &[
                "ask earlier: prefetch, more requests in flight, more connections",
                "cache what the peer sends, or move it nearer; look at the peer's own load",
            ],
            disproof: "ask the same peer from another program meanwhile (curl, iperf3): if it answers fast, the wait is in this program",
        },
    ),
];
