//! Addresses of connections in words.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tracer_abi::kernel::SocketAddresses;

use crate::event::Text;

fn end(address: [u8; 16], port: u16, family: u16) -> Option<SocketAddr> {
    let address = match i32::from(family) {
        libc::AF_INET => IpAddr::V4(Ipv4Addr::new(address[0], address[1], address[2], address[3])),
        libc::AF_INET6 => {
            let address = Ipv6Addr::from(address);
            // A connection of IPv4 through a socket of IPv6 reads as what it is.
            address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4)
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

/// Both ends, local first; an IPv6 end that is an IPv4 one in disguise is shown as that.
#[must_use]
pub fn ends(addresses: &SocketAddresses) -> Option<(SocketAddr, SocketAddr)> {
    let local = end(addresses.local, addresses.local_port, addresses.family)?;
    let peer = end(addresses.peer, addresses.peer_port, addresses.family)?;
    Some((local, peer))
}

/// `local -> peer`; only `local` for a socket without a peer (a listener). `None` if it has no address.
#[must_use]
pub fn connection(addresses: &SocketAddresses) -> Option<Text> {
    let (local, peer) = ends(addresses)?;
    Some(if peer.port() == 0 {
        Text::from(local.to_string())
    } else {
        Text::from(format!("{local} -> {peer}"))
    })
}

/// `peer -> local`: the way a delivered packet came.
#[must_use]
pub fn connection_peer_first(addresses: &SocketAddresses) -> Option<Text> {
    let (local, peer) = ends(addresses)?;
    Some(if peer.port() == 0 {
        Text::from(local.to_string())
    } else {
        Text::from(format!("{peer} -> {local}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(bytes: [u8; 4]) -> [u8; 16] {
        let mut address = [0; 16];
        address[..4].copy_from_slice(&bytes);
        address
    }

    #[test]
    fn both_families_read_as_usual() {
        let mut addresses = SocketAddresses {
            local: v4([10, 0, 0, 1]),
            peer: v4([10, 0, 0, 2]),
            local_port: 41532,
            peer_port: 9000,
            family: 2,
            reserved: 0,
        };
        assert_eq!(connection(&addresses).as_deref(), Some("10.0.0.1:41532 -> 10.0.0.2:9000"));
        assert_eq!(connection_peer_first(&addresses).as_deref(), Some("10.0.0.2:9000 -> 10.0.0.1:41532"));
        addresses.peer_port = 0;
        assert_eq!(connection(&addresses).as_deref(), Some("10.0.0.1:41532"));
        addresses.family = 10;
        addresses.local = Ipv6Addr::LOCALHOST.octets();
        assert_eq!(connection(&addresses).as_deref(), Some("[::1]:41532"));
        addresses.local = Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets();
        assert_eq!(connection(&addresses).as_deref(), Some("127.0.0.1:41532"));
        addresses.family = 0;
        assert_eq!(connection(&addresses), None);
    }
}
