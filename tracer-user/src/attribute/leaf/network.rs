//! Waits that a packet or a connection event ended.

use super::wait::{Wait, peer_or_object};
use crate::attribute::cause::Cause;
use crate::attribute::names::Name;
use crate::attribute::role::Role;
use crate::attribute::segment::Leaf;
use crate::attribute::system_call::SystemCall;
use crate::attribute::timeline::Timeline;
use crate::attribute::walk::{Chain, Walker};
use crate::event::Interval;

/// A packet came from a peer outside the recording, or from one that was not caught sending.
pub fn received(walker: &mut Walker, wait: &Wait, chain: Chain) {
    let timeline = walker.timeline;
    let peer = delivered_from(walker, wait);
    let object = if peer.is_none() { peer_or_object(walker, wait) } else { peer };
    let cause = match wait.kind(&timeline.names) {
        SystemCall::Send | SystemCall::Write => Cause::NetSend,
        SystemCall::Connect => Cause::NetConnect,
        SystemCall::Accept if walker.roles.get(wait.thread) == Some(Role::Server) => Cause::AppNoRequest,
        SystemCall::Accept => Cause::NetAccept,
        _ if walker.names.get(object).ends_with(":53") => Cause::NetDns,
        _ => Cause::NetRecv,
    };
    let connection = delivered_to(walker, wait);
    let connection = if connection.is_none() { wait.object(timeline) } else { connection };
    let cause = or_retransmit(timeline, wait, connection, cause);
    let leaf = wait.leaf(timeline, cause);
    walker.emit(wait.time, chain, Leaf { object, ..leaf });
}

/// The cause of a wait for a peer, or that this machine had to send to it again meanwhile.
pub fn or_retransmit(timeline: &Timeline, wait: &Wait, connection: Name, cause: Cause) -> Cause {
    let whole = Interval::new(timeline.off_cpu[wait.row].off, wait.end.woken);
    let waits_for_peer = matches!(cause, Cause::NetRecv | Cause::NetSend | Cause::NetConnect);
    if waits_for_peer && timeline.retransmitted(connection, whole) { Cause::NetRetransmit } else { cause }
}

/// The connection that was delivered, this machine's end first as elsewhere.
fn delivered_to(walker: &mut Walker, wait: &Wait) -> Name {
    let ends = walker.names.get(wait.end.waker_object).split_once(" -> ");
    let connection = ends.map(|(peer, local)| format!("{local} -> {peer}"));
    connection.map_or(Name::NONE, |connection| walker.names.str(&connection))
}

/// The peer of the connection that was delivered: the wake edge names it first, `10.0.0.2:9000 -> 10.0.0.1:41532`.
fn delivered_from(walker: &mut Walker, wait: &Wait) -> Name {
    let peer = walker.names.get(wait.end.waker_object).split_once(" -> ").map(|(peer, _)| peer.to_owned());
    peer.map_or(Name::NONE, |peer| walker.names.str(&peer))
}
