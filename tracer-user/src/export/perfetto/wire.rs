//! Protocol-buffer messages as bytes: <https://protobuf.dev/programming-guides/encoding/>.

/// A message under construction, at the end of a buffer.
pub struct Message<'a>(&'a mut Vec<u8>);

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

impl<'a> Message<'a> {
    /// A message that begins where the buffer ends.
    pub fn at_end_of(buffer: &'a mut Vec<u8>) -> Self {
        Self(buffer)
    }

    /// A field of type `uint64`, `uint32`, `bool` or an enumeration.
    pub fn uint(&mut self, field: u32, value: u64) -> &mut Self {
        self.tag(field, VARINT);
        push_varint(self.0, value);
        self
    }

    /// A field of type `int64` or `int32`: negative ones take ten bytes.
    pub fn int(&mut self, field: u32, value: i64) -> &mut Self {
        self.uint(field, value as u64)
    }

    /// A field of type `fixed64`.
    pub fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A field of type `string`.
    pub fn string(&mut self, field: u32, value: &str) -> &mut Self {
        self.bytes(field, value.as_bytes())
    }

    /// Bytes, or a message that is encoded already.
    pub fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        self.tag(field, BYTES);
        push_varint(self.0, value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// A message within this one.
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message<'_>)) -> &mut Self {
        self.tag(field, BYTES);
        // One byte for the length; the few messages that need more are moved.
        let at = self.0.len();
        self.0.push(0);
        fill(&mut Message(self.0));
        let length = (self.0.len() - at - 1) as u64;
        if length < 0x80 {
            self.0[at] = length as u8;
        } else {
            let end = self.0.len();
            push_varint(self.0, length);
            let prefix = self.0.len() - end;
            // The length, just written behind the message, goes before it, over the byte kept free.
            self.0[at..].rotate_right(prefix);
            self.0.remove(at + prefix);
        }
        self
    }

    fn tag(&mut self, field: u32, wire: u32) {
        push_varint(self.0, u64::from(field << 3 | wire));
    }
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads a varint back; returns it and the rest.
    fn varint(bytes: &[u8]) -> (u64, &[u8]) {
        let length = bytes.iter().position(|byte| byte & 0x80 == 0).expect("it ends") + 1;
        let value = bytes[..length].iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f));
        (value, &bytes[length..])
    }

    #[test]
    fn known_bytes() {
        // The examples of the encoding's documentation.
        let mut bytes = Vec::new();
        Message::at_end_of(&mut bytes).uint(1, 150).string(2, "testing");
        assert_eq!(bytes, b"\x08\x96\x01\x12\x07testing");
        bytes.clear();
        Message::at_end_of(&mut bytes).message(3, |inner| {
            inner.uint(1, 150);
        });
        assert_eq!(bytes, b"\x1a\x03\x08\x96\x01");
        bytes.clear();
        Message::at_end_of(&mut bytes).int(1, -2).fixed64(47, 1);
        assert_eq!(bytes, b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\xf9\x02\x01\0\0\0\0\0\0\0");
    }

    proptest! {
        #[test]
        fn lengths_of_messages_are_right(text in prop::collection::vec(any::<u8>(), 0..40_000), before in any::<u8>()) {
            let mut bytes = vec![before];
            Message::at_end_of(&mut bytes).message(5, |inner| {
                    inner.bytes(6, &text);
                }).uint(7, 8);
            let (tag, rest) = varint(&bytes[1..]);
            let (length, rest) = varint(rest);
            let (inner, after) = rest.split_at(length as usize);
            prop_assert_eq!((bytes[0], tag, after), (before, 5 << 3 | 2, &[7 << 3, 8][..]));
            let (tag, rest) = varint(inner);
            let (length, rest) = varint(rest);
            prop_assert_eq!((tag, length as usize, rest), (6 << 3 | 2, text.len(), &text[..]));
        }

        #[test]
        fn numbers_come_back(value in any::<u64>()) {
            let mut bytes = Vec::new();
            push_varint(&mut bytes, value);
            prop_assert_eq!(varint(&bytes), (value, &[][..]));
        }
    }
}
