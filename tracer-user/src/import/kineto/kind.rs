//! What an event is, by its category.

/// A category of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A kernel.
    Kernel,
    /// A copy.
    Memcpy,
    /// A memset.
    Memset,
    /// A call of the CUDA or HIP runtime.
    Runtime,
    /// A call of the driver.
    Driver,
    /// An operator of the framework.
    Operator,
    /// `record_function`, steps of the profiler, the loader's `enumerate`.
    Annotation,
    /// A Python function.
    Python,
    /// A synchronisation as the device saw it. No work, though it has a stream.
    Sync,
    /// The profiler's own time.
    Overhead,
    /// Something else.
    Other,
}

impl Kind {
    /// The kind of a category, whatever its capitals: `kernel` of today, `Kernel` of 2021.
    #[inline]
    #[must_use]
    pub fn of(category: &[u8]) -> Self {
        let mut lower = [0_u8; 16];
        let Some(lower) = lower.get_mut(..category.len()) else { return Self::Other };
        lower.copy_from_slice(category);
        lower.make_ascii_lowercase();
        match &*lower {
            b"kernel" => Self::Kernel,
            b"gpu_memcpy" | b"memcpy" => Self::Memcpy,
            b"gpu_memset" | b"memset" => Self::Memset,
            b"cuda_runtime" | b"runtime" => Self::Runtime,
            b"cuda_driver" | b"driver" => Self::Driver,
            b"cpu_op" | b"operator" => Self::Operator,
            b"user_annotation" => Self::Annotation,
            b"python_function" | b"python" => Self::Python,
            b"cuda_sync" => Self::Sync,
            b"overhead" => Self::Overhead,
            _ => Self::Other,
        }
    }

    /// Whether it is work of a GPU.
    #[must_use]
    pub const fn is_gpu_work(self) -> bool {
        matches!(self, Self::Kernel | Self::Memcpy | Self::Memset)
    }

    /// Its name in `losses.reason`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Memcpy => "memcpy",
            Self::Memset => "memset",
            Self::Runtime => "runtime call",
            Self::Driver => "driver call",
            Self::Operator => "operator",
            Self::Annotation => "annotation",
            Self::Python => "python function",
            Self::Sync => "synchronisation",
            Self::Overhead => "overhead",
            Self::Other => "other event",
        }
    }
}
