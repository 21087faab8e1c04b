//! Structures of NVTX that programs hand over. Layouts as in NVTX 3 (nvToolsExt.h, nvToolsExtPayload.h).

use std::ffi::{c_char, c_void};

/// `NVTX_MESSAGE_TYPE_…`.
pub const MESSAGE_ASCII: i32 = 1;
pub const MESSAGE_UNICODE: i32 = 2;
pub const MESSAGE_REGISTERED: i32 = 3;
/// `NVTX_PAYLOAD_TYPE_EXT`: the payload is an array of [`PayloadData`], whose length is in `reserved`.
pub const PAYLOAD_EXTENDED: i32 = 0xDFBD_0009_u32 as i32;

/// `nvtxEventAttributes_t`.
#[repr(C)]
pub struct EventAttributes {
    /// Of NVTX.
    pub version: u16,
    /// Of this struct.
    pub size: u16,
    /// Not used.
    pub category: u32,
    /// Not used.
    pub color_type: i32,
    /// Not used.
    pub color: u32,
    /// What `payload` is.
    pub payload_type: i32,
    /// See [`PAYLOAD_EXTENDED`].
    pub reserved: i32,
    /// A number, or an address.
    pub payload: u64,
    /// What `message` is.
    pub message_type: i32,
    /// A string or a handle.
    pub message: *const c_void,
}

const _: () = assert!(size_of::<EventAttributes>() == 48);

impl EventAttributes {
    /// Its message.
    pub fn message(&self) -> Message {
        match self.message_type {
            MESSAGE_ASCII => Message::Narrow(self.message.cast()),
            MESSAGE_UNICODE => Message::Wide(self.message.cast()),
            MESSAGE_REGISTERED => Message::Registered(self.message.addr()),
            _ => Message::None,
        }
    }

    /// Its extended payload.
    ///
    /// # Safety
    /// Handed over by a program that keeps NVTX's rules.
    pub unsafe fn payload(&self) -> Option<Payload> {
        if self.payload_type != PAYLOAD_EXTENDED || self.reserved < 1 {
            return None;
        }
        let data = std::ptr::with_exposed_provenance::<PayloadData>(self.payload as usize);
        // SAFETY: by NVTX's rules an array of at least one, or null.
        unsafe { Payload::first(data) }
    }
}

/// A name in one of the forms that NVTX has.
#[derive(Clone, Copy)]
pub enum Message {
    /// There is none.
    None,
    /// Bytes.
    Narrow(*const c_char),
    /// `wchar_t`.
    Wide(*const libc::wchar_t),
    /// The handle of a registered one: its number in [`super::texts`].
    Registered(usize),
}

/// `nvtxPayloadData_t`.
#[repr(C)]
pub struct PayloadData {
    schema: u64,
    size: usize,
    data: *const c_void,
}

/// Words of a payload that are kept: NCCL's longest that is read has 40 bytes.
const WORDS: usize = 5;

/// The beginning of a payload, copied.
#[derive(Clone, Copy)]
pub struct Payload {
    words: [u64; WORDS],
    size: usize,
}

impl Payload {
    /// Copies the first of an array.
    ///
    /// # Safety
    /// Null, or an array of at least one by NVTX's rules.
    pub unsafe fn first(data: *const PayloadData) -> Option<Self> {
        // SAFETY: by the caller's promise.
        let data = unsafe { data.as_ref() }?;
        // A size of -1 leaves it to the reader: nothing that is read here does.
        if data.data.is_null() || data.size == usize::MAX {
            return None;
        }
        let size = data.size.min(WORDS * 8);
        let mut words = [0_u64; WORDS];
        // SAFETY: the program says that so many bytes are there.
        unsafe {
            std::ptr::copy_nonoverlapping(data.data.cast::<u8>(), words.as_mut_ptr().cast::<u8>(), size);
        }
        Some(Self { words, size: data.size })
    }

    /// Bytes that it has.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The number of eight bytes at `offset`, a multiple of eight.
    pub fn long(&self, offset: usize) -> u64 {
        self.words.get(offset / 8).copied().unwrap_or(0)
    }

    /// The number of four bytes at `offset`, a multiple of four.
    pub fn int(&self, offset: usize) -> i32 {
        let bytes = self.long(offset).to_ne_bytes();
        let half = if offset.is_multiple_of(8) { 0 } else { 4 };
        i32::from_ne_bytes([bytes[half], bytes[half + 1], bytes[half + 2], bytes[half + 3]])
    }
}
