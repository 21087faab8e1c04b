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

/// What of a scenario the tests' form has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tested {
    /// All of it.
    Whole,
    /// The scenario alone. Its neighbour takes a CPU of its own, which a test machine of two CPUs does not have beside what
    /// is recorded and the recorder: there the neighbour is what holds the program up, and rightly named.
    Alone,
    /// Nothing: it is at the bar only where CPUs idle.
    FullFormOnly,
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
    /// What of the scenario the tests' form has.
    pub tested: Tested,
}

/// The scenarios, each with what it needs and with a neighbour that could be mistaken for its cause.
const SCENARIOS: [(&str, Option<Outside>, Option<Neighbour>, Tested); 30] = [
    ("cold-read", None, Some(Neighbour::Disk), Tested::Whole),
    ("direct-read", None, Some(Neighbour::Disk), Tested::Alone),
    ("uring-read", None, Some(Neighbour::Disk), Tested::Alone),
    ("throttled-read", None, Some(Neighbour::Inside("busy-poll")), Tested::Alone),
    ("decode", None, Some(Neighbour::Inside("futex")), Tested::Whole),
    ("sleep", None, Some(Neighbour::Inside("busy-poll")), Tested::Whole),
    ("lock", None, Some(Neighbour::Inside("futex")), Tested::Whole),
    ("gil", None, Some(Neighbour::Inside("native")), Tested::FullFormOnly),
    ("run-queue", Some(Outside::Competitor), Some(Neighbour::Inside("short-lived")), Tested::Whole),
    ("slow-peer", Some(Outside::Peer), Some(Neighbour::Inside("chatter")), Tested::Whole),
    ("sync-each-kernel", None, Some(Neighbour::Disk), Tested::Whole),
    ("pageable-copy", None, Some(Neighbour::Inside("short-lived")), Tested::Whole),
    ("exposed-copy", None, Some(Neighbour::Inside("busy-poll")), Tested::Alone),
    ("alloc-free", None, Some(Neighbour::Inside("futex")), Tested::Alone),
    ("module-load", None, Some(Neighbour::Disk), Tested::Alone),
    ("graph-build", None, Some(Neighbour::Inside("busy-poll")), Tested::FullFormOnly),
    ("launch-bound", None, Some(Neighbour::Inside("busy-poll")), Tested::FullFormOnly),
    ("full-queue", None, Some(Neighbour::Inside("futex")), Tested::FullFormOnly),
    ("other-stream", None, Some(Neighbour::Inside("futex")), Tested::Alone),
    ("other-device", None, Some(Neighbour::Inside("chatter")), Tested::Alone),
    ("shared-device", Some(Outside::OtherUser), Some(Neighbour::Disk), Tested::Alone),
    ("late-rank-read", None, Some(Neighbour::Disk), Tested::Alone),
    ("late-rank-read-4", None, None, Tested::Whole),
    ("late-rank-decode", None, None, Tested::Whole),
    ("late-rank-decode-4", None, None, Tested::Whole),
    ("late-rank-contention", Some(Outside::Competitor), None, Tested::Whole),
    ("late-rank-contention-4", Some(Outside::Competitor), None, Tested::Whole),
    ("late-rank-sync", None, None, Tested::Whole),
    ("late-rank-sync-4", None, None, Tested::Whole),
    ("comm-init", None, None, Tested::Whole),
];

impl Case {
    /// All of them.
    pub fn all() -> Vec<Self> {
        let both = |(scenario, outside, loud, tested): (&'static str, _, Option<Neighbour>, _)| {
            let alone = Self { scenario, outside, neighbour: None, tested };
            std::iter::once(alone).chain(loud.map(|loud| Self { neighbour: Some(loud), ..alone }))
        };
        SCENARIOS.into_iter().flat_map(both).collect()
    }

    /// Whether the tests' form has it.
    pub fn is_tested(&self) -> bool {
        match self.tested {
            Tested::Whole => true,
            Tested::Alone => self.neighbour.is_none(),
            Tested::FullFormOnly => false,
        }
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
