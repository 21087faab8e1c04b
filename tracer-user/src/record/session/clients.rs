//! Other clients of CUPTI beside the shim, as their calls tell: when one takes the records over, and when it is gone.

use std::collections::BTreeMap;

use crate::event::{MonoNs, Pid};
use crate::record::inject::Client;

/// A client that switched everything off is gone after so long: it may switch on again for its next step.
const GONE_AFTER_NS: i64 = 1_000_000_000;

/// When each kind of call was last made by another client.
pub type Calls = BTreeMap<Client, MonoNs>;

/// What is to be done about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Its records have gone to another client since then.
    Taken(MonoNs),
    /// The other client is gone: the shim is to begin anew.
    Restart,
}

/// The processes with other clients.
#[derive(Debug, Default)]
pub struct Clients {
    /// The registration that was noticed last, and whether that client is still there.
    seen: BTreeMap<Pid, (MonoNs, bool)>,
}

impl Clients {
    /// Looks at a process's calls.
    pub fn look(&mut self, pid: Pid, calls: &Calls, now: MonoNs) -> Option<Move> {
        let registered = *calls.get(&Client::Registers)?;
        let last = |what: &[Client]| what.iter().filter_map(|what| calls.get(what)).max().copied();
        let (known, here) = self.seen.entry(pid).or_insert((MonoNs::MIN, false));
        if registered > *known {
            let first = !*here;
            (*known, *here) = (registered, true);
            return first.then_some(Move::Taken(registered));
        }
        let on = last(&[Client::Registers, Client::Enables]);
        let off = last(&[Client::Disables, Client::Leaves])?;
        if *here && on.is_none_or(|on| off > on) && (now - off).0 >= GONE_AFTER_NS {
            *here = false;
            return Some(Move::Restart);
        }
        None
    }

    /// The processes in which another client is.
    pub fn present(&self) -> impl Iterator<Item = Pid> + '_ {
        self.seen.iter().filter(|(_, (_, here))| *here).map(|(pid, _)| *pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: Pid = Pid(7);
    const SECOND: i64 = 1_000_000_000;

    fn calls(made: &[(Client, i64)]) -> Calls {
        made.iter().map(|(what, second)| (*what, MonoNs(second * SECOND))).collect()
    }

    #[test]
    fn a_client_comes_and_goes_and_comes_again() {
        use Client::{Disables as D, Enables as E, Registers as R};
        let mut clients = Clients::default();
        let mut look =
            |made: &[(Client, i64)], now: i64| clients.look(PID, &calls(made), MonoNs(now * SECOND));
        assert_eq!(look(&[], 1), None);
        assert_eq!(look(&[(R, 2), (E, 2)], 3), Some(Move::Taken(MonoNs(2 * SECOND))));
        assert_eq!(look(&[(R, 2), (E, 2)], 9), None, "it goes on");
        assert_eq!(look(&[(R, 2), (E, 2), (D, 9)], 9), None, "it may switch on again");
        assert_eq!(look(&[(R, 2), (E, 10), (D, 9)], 11), None);
        assert_eq!(look(&[(R, 2), (E, 10), (D, 12)], 13), Some(Move::Restart));
        assert_eq!(look(&[(R, 2), (E, 10), (D, 12)], 14), None);
        assert_eq!(look(&[(R, 20), (E, 20), (D, 12)], 21), Some(Move::Taken(MonoNs(20 * SECOND))));
        assert_eq!(clients.present().collect::<Vec<_>>(), [PID]);
    }
}
