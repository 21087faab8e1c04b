//! Who holds the other end of a pipe, a unix socket or a connection within this machine.
//!
//! Only `/proc` knows it, and only by a scan over all descriptors. So what a scan found is kept. The recorded tree is
//! scanned again when an object comes up that is not known, when a process was made or ended, and now and then, since
//! ends are closed after a fork; if nobody in the tree holds the other end, all processes are scanned. Scans are rationed
//! by time, so that they cost at most a twentieth of one CPU; between them an unknown end stays unnamed.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use tracer_abi::kernel::{ObjectId, ObjectKind, SocketAddresses};

use super::procfs::{Access, all_processes, descriptors, read_bounded};
use super::sockets::ends;
use crate::event::{MonoNs, Pid, Text};
use crate::record::clocks;
use crate::record::tree::Tree;

/// Least time between two scans of the tree, and of the whole machine.
const TREE_SCAN_NS: i64 = 20_000_000;
const MACHINE_SCAN_NS: i64 = 2_000_000_000;
/// After so long a scan of the tree is out of date.
const FRESH_NS: i64 = 1_000_000_000;
/// What a process held is remembered for so long after it was found to be gone.
const DEAD_KEPT_NS: i64 = 2_000_000_000;
/// A scan that took the CPU for `t` is not repeated within `RATION * t`.
const RATION: i64 = 20;
/// Most holders named in one cell.
const MAX_NAMED: usize = 8;
/// The tables of connections are text that grows with every connection of the network namespace.
const CONNECTION_TABLE_BYTES: usize = 8 << 20;

type Holding = HashMap<u64, Vec<(Pid, Access)>>;

/// What the last scans found.
#[derive(Default)]
pub struct Holders {
    pipes: Holding,
    sockets: Holding,
    /// Inode of the socket at (local, peer), of the network namespaces seen.
    connections: HashMap<(SocketAddr, SocketAddr), u64>,
    names: HashMap<Pid, Text>,
    /// Asked for and not found on the whole machine: not asked for again until the next scan of it.
    missing: HashSet<u64>,
    /// Scans to make because a process was made, executed a program, or ended.
    outdated: u8,
    /// When holders were found to be gone.
    died: HashMap<Pid, MonoNs>,
    last_scan: Option<MonoNs>,
    next_tree_scan: MonoNs,
    next_machine_scan: MonoNs,
}

/// A key for what is asked about, so that a miss is remembered.
fn key(id: &ObjectId) -> Option<u64> {
    match id.kind {
        kind if kind == ObjectKind::Pipe as u32 => Some(id.inode),
        kind if kind == ObjectKind::Unix as u32 => Some(id.peer_inode).filter(|&inode| inode != 0),
        kind if kind == ObjectKind::Tcp as u32 => {
            let (local, peer) = ends(&id.addresses)?;
            within_machine(local, peer).then_some(id.inode)
        }
        _ => None,
    }
}

/// Whether both ends can be on this machine, as far as the addresses say.
fn within_machine(local: SocketAddr, peer: SocketAddr) -> bool {
    peer.port() != 0 && (peer.ip().is_loopback() || peer.ip() == local.ip())
}

impl Holders {
    /// Descriptors may have changed hands: a process of the tree was made, executed a program, or ended.
    pub fn outdate(&mut self) {
        // One scan at once, since the process may be gone soon, and one when it has closed what it does not use.
        self.outdated = 2;
    }

    /// Scans again if one of the objects that callers worked on has no known other end, or what is known is out of
    /// date, and a scan is due.
    pub fn refresh<'a>(
        &mut self,
        wanted: impl Iterator<Item = (Pid, &'a ObjectId)>,
        tree: &Tree,
        now: MonoNs,
    ) {
        let wanted: Vec<(Pid, &ObjectId, u64)> =
            wanted.filter_map(|(pid, id)| Some((pid, id, key(id)?))).collect();
        if wanted.is_empty() && self.outdated == 0 {
            return;
        }
        let stale = self.outdated > 0 || self.last_scan.is_none_or(|last| (now - last).0 >= FRESH_NS);
        let unknown = self.any_unknown(&wanted);
        if (stale || unknown) && now >= self.next_tree_scan {
            let members: Vec<Pid> = tree.members().collect();
            self.names.extend(members.iter().map(|&pid| (pid, tree.label(pid))));
            let connections = wanted.iter().any(|(_, id, _)| id.kind == ObjectKind::Tcp as u32);
            let cost = self.scan(&members, connections, now);
            self.next_tree_scan = MonoNs(now.0 + TREE_SCAN_NS.max(RATION * cost));
            self.last_scan = Some(now);
            self.outdated = self.outdated.saturating_sub(1);
        }
        if unknown && now >= self.next_machine_scan && self.any_unknown(&wanted) {
            self.missing.clear();
            self.names.clear();
            let mut everybody = Vec::new();
            for stat in all_processes().into_iter().filter(|stat| !stat.kernel) {
                self.names.insert(Pid(stat.id), Text::from(format!("{}/{}", stat.id, stat.comm)));
                everybody.push(Pid(stat.id));
            }
            let cost = self.scan(&everybody, true, now);
            self.next_machine_scan = MonoNs(now.0 + MACHINE_SCAN_NS.max(RATION * cost));
            let missing: Vec<u64> = wanted
                .iter()
                .filter(|(pid, id, _)| !self.answers(id, *pid))
                .map(|(_, _, key)| *key)
                .collect();
            self.missing.extend(missing);
        }
    }

    fn any_unknown(&self, wanted: &[(Pid, &ObjectId, u64)]) -> bool {
        wanted.iter().any(|(pid, id, key)| !self.missing.contains(key) && !self.answers(id, *pid))
    }

    fn answers(&self, id: &ObjectId, pid: Pid) -> bool {
        match id.kind {
            kind if kind == ObjectKind::Pipe as u32 => {
                self.pipe_ends(id.inode, pid).is_some_and(|ends| !ends.is_empty())
            }
            kind if kind == ObjectKind::Unix as u32 => self.sockets.contains_key(&id.peer_inode),
            _ => self.other_socket(&id.addresses).is_some_and(|inode| self.sockets.contains_key(&inode)),
        }
    }

    /// Enters what these processes hold now, and returns how much CPU time that took. Of an object that is seen again, what
    /// these processes held before is forgotten; what others held stays, for a while also if they are gone: calls that
    /// waited for them are still to come.
    fn scan(&mut self, processes: &[Pid], connections: bool, now: MonoNs) -> i64 {
        let began = clocks::thread_cpu_ns();
        let (mut pipes, mut sockets) = (Holding::new(), Holding::new());
        let mut namespaces = HashSet::new();
        for &pid in processes {
            for found in descriptors(pid) {
                let holding = if found.pipe { &mut pipes } else { &mut sockets };
                let holders = holding.entry(found.inode).or_default();
                if !holders.contains(&(pid, found.access)) {
                    holders.push((pid, found.access));
                }
            }
            if connections
                && let Ok(namespace) = std::fs::read_link(format!("/proc/{pid}/ns/net"))
                && namespaces.insert(namespace)
            {
                for table in ["tcp", "tcp6"] {
                    let bytes = read_bounded(format!("/proc/{pid}/net/{table}"), CONNECTION_TABLE_BYTES);
                    self.connections.extend(bytes.iter().flat_map(|bytes| parse_connections(bytes)));
                }
            }
        }
        let scanned: HashSet<Pid> = processes.iter().copied().collect();
        let died = &mut self.died;
        died.retain(|_, since| (now - *since).0 < DEAD_KEPT_NS * 2);
        let mut gone = |pid: Pid| {
            if std::fs::exists(format!("/proc/{pid}")).unwrap_or(false) {
                return scanned.contains(&pid);
            }
            (now - *died.entry(pid).or_insert(now)).0 >= DEAD_KEPT_NS
        };
        merge(&mut self.pipes, pipes, &mut gone);
        merge(&mut self.sockets, sockets, &mut gone);
        if self.connections.len() > MAX_KNOWN {
            self.connections.clear();
        }
        clocks::thread_cpu_ns() - began
    }

    /// The processes at the other end of a pipe: the writers for one who reads it, and the other way round. One who
    /// holds both ends (a parent that kept both after a fork) is at both. `None`: the pipe is not known.
    fn pipe_ends(&self, inode: u64, pid: Pid) -> Option<Vec<Pid>> {
        let holders = self.pipes.get(&inode)?;
        let own: Vec<Access> =
            holders.iter().filter(|(holder, _)| *holder == pid).map(|(_, access)| *access).collect();
        let reads = own.iter().any(|access| *access != Access::Write);
        let writes = own.iter().any(|access| *access != Access::Read);
        let other_end = |access: Access| match access {
            Access::Read => writes || !reads,
            Access::Write => reads || !writes,
            Access::Both => true,
        };
        let mut others: Vec<Pid> = holders
            .iter()
            .filter(|(holder, access)| *holder != pid && other_end(*access))
            .map(|(holder, _)| *holder)
            .collect();
        others.dedup();
        if others.is_empty() && reads && writes {
            others.push(pid);
        }
        Some(others)
    }

    /// Column `peer` for a pipe.
    #[must_use]
    pub fn pipe_peer(&self, inode: u64, pid: Pid, tree: &Tree) -> Option<Text> {
        self.names_of(self.pipe_ends(inode, pid)?, tree)
    }

    /// Column `peer` for a unix socket, by the inode of its other end.
    #[must_use]
    pub fn socket_peer(&self, peer_inode: u64, pid: Pid, tree: &Tree) -> Option<Text> {
        let holders = self.sockets.get(&peer_inode)?;
        let mut others: Vec<Pid> =
            holders.iter().map(|(holder, _)| *holder).filter(|holder| *holder != pid).collect();
        if others.is_empty() && !holders.is_empty() {
            others.push(pid);
        }
        self.names_of(others, tree)
    }

    /// Column `peer` for a connection whose other end is on this machine.
    #[must_use]
    pub fn connection_peer(&self, addresses: &SocketAddresses, pid: Pid, tree: &Tree) -> Option<Text> {
        self.socket_peer(self.other_socket(addresses)?, pid, tree)
    }

    fn other_socket(&self, addresses: &SocketAddresses) -> Option<u64> {
        let (local, peer) = ends(addresses)?;
        within_machine(local, peer).then(|| self.connections.get(&(peer, local)).copied())?
    }

    fn names_of(&self, mut pids: Vec<Pid>, tree: &Tree) -> Option<Text> {
        pids.sort_unstable();
        pids.dedup();
        let more = pids.len() > MAX_NAMED;
        let mut names: Vec<String> = pids
            .iter()
            .take(MAX_NAMED)
            .map(|pid| match self.names.get(pid) {
                Some(name) if !tree.is_member(*pid) => name.to_string(),
                _ => tree.label(*pid).to_string(),
            })
            .collect();
        if more {
            names.push("…".into());
        }
        (!names.is_empty()).then(|| Text::from(names.join(",")))
    }
}

/// Most pipes, sockets or connections kept.
const MAX_KNOWN: usize = 1 << 17;

fn merge(known: &mut Holding, found: Holding, gone: &mut impl FnMut(Pid) -> bool) {
    if known.len() > MAX_KNOWN {
        known.clear();
    }
    for (inode, mut holders) in found {
        let before = known.remove(&inode).unwrap_or_default();
        holders.extend(before.into_iter().filter(|(pid, _)| !gone(*pid)));
        known.insert(inode, holders);
    }
}

/// Lines of `/proc/net/tcp{,6}`: `sl local rem st … uid timeout inode`, addresses as words in the machine's byte order.
fn parse_connections(bytes: &[u8]) -> Vec<((SocketAddr, SocketAddr), u64)> {
    let parse = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let local = parse_address(fields.nth(1)?)?;
        let peer = parse_address(fields.next()?)?;
        let inode: u64 = fields.nth(6)?.parse().ok()?;
        (inode != 0).then_some(((local, peer), inode))
    };
    String::from_utf8_lossy(bytes).lines().skip(1).filter_map(parse).collect()
}

fn parse_address(field: &str) -> Option<SocketAddr> {
    let (address, port) = field.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut words = Vec::with_capacity(16);
    for start in (0..address.len()).step_by(8) {
        let word = u32::from_str_radix(address.get(start..start + 8)?, 16).ok()?;
        words.extend_from_slice(&word.to_ne_bytes());
    }
    let address = match words.len() {
        4 => std::net::IpAddr::from(<[u8; 4]>::try_from(words).ok()?),
        16 => {
            let address = std::net::Ipv6Addr::from(<[u8; 16]>::try_from(words).ok()?);
            address.to_ipv4_mapped().map_or(std::net::IpAddr::V6(address), std::net::IpAddr::V4)
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::record::procfs::link_of;

    fn own() -> Pid {
        Pid(std::process::id() as i32)
    }

    fn inode_of(fd: &impl std::os::fd::AsRawFd) -> u64 {
        std::fs::metadata(format!("/proc/self/fd/{}", fd.as_raw_fd())).expect("open").ino()
    }

    fn id(kind: ObjectKind, inode: u64, peer_inode: u64, addresses: SocketAddresses) -> ObjectId {
        ObjectId { inode, peer_inode, device: 0, generation: 0, rdev: 0, kind: kind as u32, addresses }
    }

    #[test]
    fn the_reader_of_a_pipe_is_found_outside_the_tree() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat starts");
        let pipe = child.stdin.take().expect("its stdin");
        let inode = inode_of(&pipe);
        // Until it has executed `cat`, the child holds what its parent held.
        let child_pid = Pid(child.id() as i32);
        while std::fs::read_link(format!("/proc/{child_pid}/exe"))
            .is_ok_and(|exe| exe == std::env::current_exe().expect("own"))
        {
            std::thread::yield_now();
        }
        assert!(link_of(child_pid, 0).is_some_and(|link| *link == *format!("pipe:[{inode}]")));
        let tree = Tree::new(MonoNs(0));
        let mut holders = Holders::default();
        let object = id(ObjectKind::Pipe, inode, 0, SocketAddresses::default());
        holders.refresh([(own(), &object)].into_iter(), &tree, MonoNs(1));
        let peer = holders.pipe_peer(inode, own(), &tree).expect("a peer");
        let back = holders.pipe_peer(inode, child_pid, &tree).expect("a peer");
        drop(pipe);
        child.wait().expect("ours");
        assert_eq!(peer.as_str(), format!("{child_pid}/cat"));
        assert!(back.starts_with(&format!("{}/", own())), "{back}");
    }

    #[test]
    fn both_ends_of_sockets_in_one_process_are_itself() {
        let (a, b) = UnixStream::pair().expect("a pair");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = std::net::TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let _server = listener.accept().expect("accepts");
        let mut addresses = SocketAddresses { family: 2, ..SocketAddresses::default() };
        addresses.local[..4].copy_from_slice(&[127, 0, 0, 1]);
        addresses.peer[..4].copy_from_slice(&[127, 0, 0, 1]);
        addresses.local_port = client.local_addr().expect("bound").port();
        addresses.peer_port = client.peer_addr().expect("connected").port();
        let tree = Tree::new(MonoNs(0));
        let mut holders = Holders::default();
        let unix = id(ObjectKind::Unix, inode_of(&a), inode_of(&b), SocketAddresses::default());
        let tcp = id(ObjectKind::Tcp, inode_of(&client), 0, addresses);
        holders.refresh([(own(), &unix), (own(), &tcp)].into_iter(), &tree, MonoNs(1));
        let name = tree.label(own());
        assert_eq!(holders.socket_peer(unix.peer_inode, own(), &tree).as_ref(), Some(&name));
        assert_eq!(holders.connection_peer(&addresses, own(), &tree), Some(name));
    }

    #[test]
    fn a_miss_is_not_scanned_for_again_at_once() {
        let tree = Tree::new(MonoNs(0));
        let mut holders = Holders::default();
        let object = id(ObjectKind::Pipe, u64::MAX, 0, SocketAddresses::default());
        holders.refresh([(own(), &object)].into_iter(), &tree, MonoNs(1));
        assert!(holders.missing.contains(&u64::MAX));
        holders.refresh([(own(), &object)].into_iter(), &tree, MonoNs(FRESH_NS / 2));
        assert_eq!(holders.last_scan, Some(MonoNs(1)), "known to be missing, and fresh");
        holders.outdate();
        holders.refresh([(own(), &object)].into_iter(), &tree, MonoNs(1 << 40));
        assert_eq!(holders.last_scan, Some(MonoNs(1 << 40)));
    }
}
