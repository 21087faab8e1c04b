//! Reads protocol-buffer messages, whatever they hold.

use std::collections::BTreeMap;

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A varint or `fixed64`.
    Number(u64),
    /// A string or a message.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub fn number(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Bytes(bytes) => panic!("not a number: {bytes:?}"),
        }
    }

    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(number) => panic!("not bytes: {number}"),
        }
    }

    pub fn text(self) -> &'a str {
        std::str::from_utf8(self.bytes()).unwrap()
    }

    pub fn message(self) -> Fields<'a> {
        Fields::read(self.bytes())
    }
}

/// A message: its fields' values in their order, by number.
#[derive(Debug)]
pub struct Fields<'a>(BTreeMap<u64, Vec<Value<'a>>>);

impl<'a> Fields<'a> {
    pub fn read(mut bytes: &'a [u8]) -> Self {
        let mut fields: BTreeMap<u64, Vec<Value<'a>>> = BTreeMap::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = match tag & 7 {
                0 => Value::Number(varint(&mut bytes)),
                1 => Value::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    Value::Bytes(take(&mut bytes, length))
                }
                other => panic!("wire type {other}"),
            };
            fields.entry(tag >> 3).or_default().push(value);
        }
        Self(fields)
    }

    pub fn all(&self, field: u64) -> &[Value<'a>] {
        self.0.get(&field).map_or(&[], Vec::as_slice)
    }

    pub fn one(&self, field: u64) -> Option<Value<'a>> {
        let values = self.all(field);
        assert!(values.len() < 2, "field {field} is there {} times", values.len());
        values.first().copied()
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number without end")
}
