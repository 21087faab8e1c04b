//! What is run: each scenario alone, and beside a loud innocent neighbour.

/// Who is loud beside a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// Another process, outside the recording, that reads cold files from the same disk without pause.
    Disk,
    /// A neighbour inside the recorded process, by its name there.
    Inside(&'static str),
}

/// What a scenario needs outside the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// A slow TCP peer.
    Peer,
    /// A process that competes for the CPU.
    Competitor,
    /// A process that computes on the same device.
    OtherUser,
}

/// One thing to run and score.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The scenario, by its name in the workloads.
    pub scenario: &'static str,
    /// What it needs outside.
    pub outside: Option<Outside>,
    /// Who is loud beside it.
    pub neighbour: Option<Neighbour>,
}

/// The scenarios, each with what it needs and with a neighbour that could be mistaken for its cause.
const SCENARIOS: [(&str, Option<Outside>, Option<Neighbour>); 30] = [
    ("cold-read", None, Some(Neighbour::Disk)),
    ("direct-read", None, Some(Neighbour::Disk)),
    ("uring-read", None, Some(Neighbour::Disk)),
    ("throttled-read", None, Some(Neighbour::Inside("busy-poll"))),
    ("decode", None, Some(Neighbour::Inside("futex"))),
    ("sleep", None, Some(Neighbour::Inside("busy-poll"))),
    ("lock", None, Some(Neighbour::Inside("futex"))),
    ("gil", None, Some(Neighbour::Inside("native"))),
    ("run-queue", Some(Outside::Competitor), Some(Neighbour::Inside("short-lived"))),
    ("slow-peer", Some(Outside::Peer), Some(Neighbour::Inside("chatter"))),
    ("sync-each-kernel", None, Some(Neighbour::Disk)),
    ("pageable-copy", None, Some(Neighbour::Inside("short-lived"))),
    ("exposed-copy", None, Some(Neighbour::Inside("busy-poll"))),
    ("alloc-free", None, Some(Neighbour::Inside("futex"))),
    ("module-load", None, Some(Neighbour::Disk)),
    ("graph-build", None, Some(Neighbour::Inside("busy-poll"))),
    ("launch-bound", None, Some(Neighbour::Inside("busy-poll"))),
    ("full-queue", None, Some(Neighbour::Inside("futex"))),
    ("other-stream", None, Some(Neighbour::Inside("futex"))),
    ("other-device", None, Some(Neighbour::Inside("chatter"))),
    ("shared-device", Some(Outside::OtherUser), Some(Neighbour::Disk)),
    ("late-rank-read", None, Some(Neighbour::Disk)),
    ("late-rank-read-4", None, None),
    ("late-rank-decode", None, None),
    ("late-rank-decode-4", None, None),
    ("late-rank-contention", Some(Outside::Competitor), None),
    ("late-rank-contention-4", Some(Outside::Competitor), None),
    ("late-rank-sync", None, None),
    ("late-rank-sync-4", None, None),
    ("comm-init", None, None),
];

impl Case {
    /// All of them.
    pub fn all() -> Vec<Self> {
        let both = |(scenario, outside, loud): (&'static str, Option<Outside>, Option<Neighbour>)| {
            let loud = loud.map(|loud| Self { scenario, outside, neighbour: Some(loud) });
            std::iter::once(Self { scenario, outside, neighbour: None }).chain(loud)
        };
        SCENARIOS.into_iter().flat_map(both).collect()
    }

    /// `cold-read`, `cold-read+disk`.
    pub fn name(&self) -> String {
        match self.neighbour {
            None => self.scenario.to_owned(),
            Some(Neighbour::Disk) => format!("{}+disk", self.scenario),
            Some(Neighbour::Inside(kind)) => format!("{}+{kind}", self.scenario),
        }
    }
}

/// How a case is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `gtrace run`.
    Run,
    /// `gtrace attach` to the running program.
    Attach,
}

impl Mode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Attach => "attach",
        }
    }
}
