//! Handles. Each is stored as a signed integer, since some readers of Parquet know no unsigned ones.

macro_rules! id {
    ($($(#[doc = $doc:literal])* $name:ident($inner:ty);)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

id! {
    /// Process id (thread group id) in the recorder's pid namespace.
    Pid(i32);
    /// Thread id in the recorder's pid namespace.
    Tid(i32);
    /// GPU: CUPTI's device id within a process, made unique over the recording by its UUID.
    DeviceId(i32);
    /// CUDA context, unique within a process.
    ContextId(i64);
    /// CUDA stream, unique within a process.
    StreamId(i64);
    /// CUPTI correlation id: joins a GPU op with the call that launched it, unique within a process.
    CorrelationId(i64);
    /// GPU op, unique within a bundle.
    OpId(i64);
    /// GPU gap, unique within a bundle.
    GapId(i64);
    /// Block request, unique within a bundle.
    RequestId(i64);
    /// Row of a table, unique within that table of a bundle; evidence refers to it.
    RowId(i64);
}
