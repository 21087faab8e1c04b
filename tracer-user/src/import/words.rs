//! Words that many rows share, made once, and ids that stand for none.

use std::sync::LazyLock;

use crate::event::Text;

macro_rules! words {
    ($($name:ident,)*) => {
        /// Shared texts, each named as it reads.
        pub struct Words { $( pub $name: Text, )* }

        /// The only instance.
        pub static WORDS: LazyLock<Words> =
            LazyLock::new(|| Words { $( $name: Text::from(stringify!($name)), )* });
    };
}

words! {
    annotation,
    context,
    cpu_op,
    driver,
    event,
    graph,
    kernel,
    memcpy,
    memset,
    nvtx,
    python,
    runtime,
    stream,
    stream_wait_event,
}

/// Correlation id of an op whose launch is not named.
pub const NO_LAUNCH: i64 = i64::MAX;
/// Correlation id of a call that names no op.
pub const NO_OP: i64 = i64::MAX - 1;
