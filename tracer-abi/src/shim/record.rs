//! What records have in common.

/// Groups of records whose losses are counted apart.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Kernels, copies, memsets, graphs.
    Gpu = 0,
    /// API calls.
    Api = 1,
    /// Synchronisations.
    Sync = 2,
    /// CUPTI's own cost.
    Overhead = 3,
    /// Names, devices, contexts, streams, sessions.
    Info = 4,
    /// Clock readings.
    Clock = 5,
    /// Notes of invalid records.
    Invalid = 6,
    /// Marked ranges and calls of NCCL.
    Marker = 7,
}

impl Class {
    /// How many there are.
    pub const COUNT: usize = 8;
    /// All of them.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Gpu,
        Self::Api,
        Self::Sync,
        Self::Overhead,
        Self::Info,
        Self::Clock,
        Self::Invalid,
        Self::Marker,
    ];
}

macro_rules! record_kinds {
    ($($kind:ident = $number:literal: $class:ident,)*) => {
        /// What a record is. The record's type has the same name.
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each is documented at its type")]
        pub enum RecordKind { $($kind = $number,)* }

        impl RecordKind {
            /// The kind for a raw number; `None` for one that this version does not know.
            #[must_use]
            pub const fn from_raw(raw: u8) -> Option<Self> {
                Some(match raw { $($number => Self::$kind,)* _ => return None })
            }

            /// Under which class its losses are counted.
            #[must_use]
            pub const fn class(self) -> Class {
                match self { $(Self::$kind => Class::$class,)* }
            }
        }
    };
}

record_kinds! {
    Kernel = 1: Gpu,
    Copy = 2: Gpu,
    Memset = 3: Gpu,
    Graph = 4: Gpu,
    Sync = 5: Sync,
    Api = 6: Api,
    Overhead = 7: Overhead,
    Name = 8: Info,
    Device = 9: Info,
    Context = 10: Info,
    Stream = 11: Info,
    Session = 12: Info,
    Clock = 13: Clock,
    Invalid = 14: Invalid,
    MarkerName = 15: Info,
    Marker = 16: Marker,
    Nccl = 17: Marker,
}

/// A record of the ring.
///
/// # Safety
/// The type is `#[repr(C)]`, aligned to 8, without padding, made of integers only: any bit pattern is a value of it, and
/// all of its bytes may be copied.
pub unsafe trait Record: Copy {
    /// Its kind.
    const KIND: RecordKind;
}

macro_rules! record {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident: $kind:ident, $bytes:literal bytes {
            $( $(#[doc = $field_doc:literal])* $field:ident: $type:ty, )*
        }
    ) => {
        $(#[doc = $doc])*
        #[repr(C, align(8))]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $( $(#[doc = $field_doc])* pub $field: $type, )*
        }

        const _: () = assert!(size_of::<$name>() == $bytes && size_of::<$name>() % 8 == 0);
        const _: () = assert!(align_of::<$name>() == 8);
        // No padding: the sizes of the fields make up the whole.
        const _: () = assert!($(size_of::<$type>() +)* 0 == size_of::<$name>());

        // SAFETY: `#[repr(C)]`, integers only, size and absence of padding are asserted above.
        unsafe impl $crate::shim::Record for $name {
            const KIND: $crate::shim::RecordKind = $crate::shim::RecordKind::$kind;
        }
    };
}

pub(super) use record;
