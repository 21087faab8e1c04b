//! The word before each record.

/// Whether a record is whole.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// Reserved, being written.
    Busy = 0xB5,
    /// Whole.
    Ready = 0xA6,
}

/// The word before each record: a tag of its position, its length, its kind, its state.
///
/// The tag makes zeroing of consumed memory unnecessary: what an earlier lap left at this place carries another tag and
/// reads as "not written yet". A writer marks its slot [`SlotState::Busy`] with its length before it writes the record,
/// so that a reader can step over it when the writer has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// State.
    pub state: SlotState,
    /// [`super::RecordKind`] as its number; 0 is padding up to the end of the ring.
    pub kind: u8,
    /// Length in words of 8 bytes, this one included.
    pub words: u16,
}

impl Slot {
    /// The word for a slot at `position` (in bytes since the ring was made).
    #[must_use]
    pub const fn encode(self, position: u64) -> u64 {
        tag(position) | (self.words as u64) << 32 | (self.kind as u64) << 48 | (self.state as u64) << 56
    }

    /// The slot in `word`, if that word was written for `position`.
    #[must_use]
    pub const fn decode(word: u64, position: u64) -> Option<Self> {
        if word & 0xFFFF_FFFF != tag(position) {
            return None;
        }
        let state = match (word >> 56) as u8 {
            0xB5 => SlotState::Busy,
            0xA6 => SlotState::Ready,
            _ => return None,
        };
        Some(Self { state, kind: (word >> 48) as u8, words: (word >> 32) as u16 })
    }

    /// Length in bytes, this word included.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.words as u64 * 8
    }
}

/// Low half of the position in words. Never equal for two laps of a ring under 32 GiB; inverted, so that fresh memory
/// (all zero) matches at no position that a lap begins with.
const fn tag(position: u64) -> u64 {
    !(position >> 3) & 0xFFFF_FFFF
}
