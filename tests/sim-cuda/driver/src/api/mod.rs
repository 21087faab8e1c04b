//! The exported C interface.

pub mod call;

mod context;
mod copy;
mod device;
mod event;
mod graph;
mod init;
mod launch;
mod memory;
mod module;
mod stream;
mod table;

use std::ffi::c_void;

/// An exported function by its symbol.
fn lookup(symbol: &str) -> Option<*mut c_void> {
    let files = [
        init::lookup,
        device::lookup,
        context::lookup,
        stream::lookup,
        event::lookup,
        memory::lookup,
        copy::lookup,
        module::lookup,
        launch::lookup,
        graph::lookup,
    ];
    files.iter().find_map(|lookup| lookup(symbol))
}
