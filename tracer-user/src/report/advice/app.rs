//! The program had nothing to do.

use super::{Entry, Remedy};

/// Advice for them.
pub const REMEDIES: &[Entry] = &[(
    "app.no_request",
    None,
    Remedy {
        change: &[
            "nothing in this program: the GPU was not asked for. Send more requests at a time, or put several models on one GPU",
        ],
        disproof: "look at the clients: if requests were waiting there, the server is not the idle one",
    },
)];
