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

/// The scenarios, each with what it needs and with the neighbour that could be mistaken for its cause.
const SCENARIOS: [(&str, Option<Outside>, Neighbour); 21] = [
    ("cold-read", None, Neighbour::Disk),
    ("direct-read", None, Neighbour::Disk),
    ("uring-read", None, Neighbour::Disk),
    ("throttled-read", None, Neighbour::Inside("busy-poll")),
    ("decode", None, Neighbour::Inside("futex")),
    ("sleep", None, Neighbour::Inside("busy-poll")),
    ("lock", None, Neighbour::Inside("futex")),
    ("gil", None, Neighbour::Inside("native")),
    ("run-queue", Some(Outside::Competitor), Neighbour::Inside("short-lived")),
    ("slow-peer", Some(Outside::Peer), Neighbour::Inside("chatter")),
    ("sync-each-kernel", None, Neighbour::Disk),
    ("pageable-copy", None, Neighbour::Inside("short-lived")),
    ("exposed-copy", None, Neighbour::Inside("busy-poll")),
    ("alloc-free", None, Neighbour::Inside("futex")),
    ("module-load", None, Neighbour::Disk),
    ("graph-build", None, Neighbour::Inside("busy-poll")),
    ("launch-bound", None, Neighbour::Inside("busy-poll")),
    ("full-queue", None, Neighbour::Inside("futex")),
    ("other-stream", None, Neighbour::Inside("futex")),
    ("other-device", None, Neighbour::Inside("chatter")),
    ("shared-device", Some(Outside::OtherUser), Neighbour::Disk),
];

impl Case {
    /// All of them.
    pub fn all() -> Vec<Self> {
        let both = |(scenario, outside, loud): (&'static str, Option<Outside>, Neighbour)| {
            [None, Some(loud)].map(|neighbour| Self { scenario, outside, neighbour })
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
