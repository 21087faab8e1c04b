//! The words that many rows share, made once.

use std::sync::LazyLock;

use crate::event::Text;

macro_rules! words {
    ($($name:ident = $word:literal,)*) => {
        /// Shared texts.
        pub(super) struct Words { $( pub $name: Text, )* }

        /// The only instance.
        pub(super) static WORDS: LazyLock<Words> = LazyLock::new(|| Words { $( $name: Text::from($word), )* });
    };
}

words! {
    kernel = "kernel",
    memcpy = "memcpy",
    memset = "memset",
    graph = "graph",
    queued = "queued",
    driver = "driver",
    runtime = "runtime",
    realtime = "realtime",
    cupti = "cupti",
    nvtx = "nvtx",
    unnamed = "(unnamed)",
    unnamed_kernel = "(kernel whose name was lost)",
}

/// CUPTI's numbers for kinds of copies (`CUpti_ActivityMemcpyKind`).
pub(super) fn copy_kind(raw: u8) -> Text {
    static TEXTS: LazyLock<Vec<Text>> = LazyLock::new(|| {
        ["unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"]
            .map(Text::from)
            .to_vec()
    });
    TEXTS.get(usize::from(raw)).unwrap_or(&TEXTS[0]).clone()
}

/// CUPTI's numbers for kinds of memory (`CUpti_ActivityMemoryKind`).
pub(super) fn memory_kind(raw: u8) -> Text {
    static TEXTS: LazyLock<Vec<Text>> = LazyLock::new(|| {
        ["unknown", "pageable", "pinned", "device", "array", "managed", "device_static", "managed_static"]
            .map(Text::from)
            .to_vec()
    });
    TEXTS.get(usize::from(raw)).unwrap_or(&TEXTS[0]).clone()
}

/// CUPTI's numbers for synchronisations (`CUpti_ActivitySynchronizationType`).
pub(super) fn sync_kind(raw: u32) -> Text {
    static TEXTS: LazyLock<Vec<Text>> = LazyLock::new(|| {
        ["unknown", "event", "stream_wait_event", "stream", "context"].map(Text::from).to_vec()
    });
    TEXTS.get(raw as usize).unwrap_or(&TEXTS[0]).clone()
}

/// CUPTI's numbers for overheads (`CUpti_ActivityOverheadKind`): 1, and multiples of 65,536.
pub(super) fn overhead_kind(raw: u32) -> Text {
    Text::from(match raw {
        1 => "compiler",
        0x1_0000 => "buffer_flush",
        0x2_0000 => "instrumentation",
        0x3_0000 => "resource",
        0x4_0000 => "module_loading",
        0x5_0000 => "lazy_function_loading",
        0x6_0000 => "command_buffer_full",
        0x7_0000 => "buffer_request",
        0x8_0000 => "uvm_init",
        other => return Text::from(format!("kind_{other}")),
    })
}
