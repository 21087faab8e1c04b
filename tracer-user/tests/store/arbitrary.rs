//! Rows of any table, out of random words.

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use gtrace::store::Table;

/// Random words, taken one after the other and from the beginning again.
pub struct Words<'a> {
    words: &'a [u64],
    next: usize,
}

impl<'a> Words<'a> {
    pub fn new(words: &'a [u64]) -> Self {
        Self { words, next: 0 }
    }

    fn next(&mut self) -> u64 {
        let round = (self.next / self.words.len()) as u64;
        let word = self.words[self.next % self.words.len()];
        self.next += 1;
        word.rotate_left(round as u32 % 64).wrapping_add(round)
    }
}

/// `rows` rows of table `T`, as a batch that somebody else may have written.
pub fn rows<T: Table>(rows: usize, words: &mut Words<'_>) -> Vec<T> {
    let schema = T::schema();
    let columns = schema.fields().iter().map(|field| column(field, rows, words)).collect();
    T::from_batch(&RecordBatch::try_new(schema.clone(), columns).unwrap()).unwrap()
}

fn column(field: &Field, rows: usize, words: &mut Words<'_>) -> ArrayRef {
    let nullable = field.is_nullable();
    let mut value = || {
        let word = words.next();
        let null = nullable && word.is_multiple_of(3);
        // Small, huge and negative ones.
        (!null).then_some(if word.is_multiple_of(2) { (word >> 40) as i64 } else { word as i64 })
    };
    match field.data_type() {
        DataType::Int32 => Arc::new((0..rows).map(|_| value().map(|v| v as i32)).collect::<Int32Array>()),
        DataType::Int64 => Arc::new((0..rows).map(|_| value()).collect::<Int64Array>()),
        DataType::Boolean => {
            Arc::new((0..rows).map(|_| value().map(|v| v & 4 != 0)).collect::<BooleanArray>())
        }
        DataType::Dictionary(..) => {
            let mut builder = StringDictionaryBuilder::<Int32Type>::new();
            for _ in 0..rows {
                match value() {
                    Some(v) => builder.append_value(text(v)),
                    None => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        DataType::List(item) => {
            let lengths: Vec<usize> = (0..rows).map(|_| (words.next() % 4) as usize).collect();
            let total = lengths.iter().sum();
            let DataType::Struct(fields) = item.data_type() else { panic!("a list of {item}") };
            let columns = fields.iter().map(|field| column(field, total, words)).collect();
            let values = StructArray::try_new(fields.clone(), columns, None).unwrap();
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(ListArray::try_new(item.clone(), offsets, Arc::new(values), None).unwrap())
        }
        other => panic!("no rows are made for {other}"),
    }
}

fn text(value: i64) -> String {
    const TEXTS: [&str; 6] =
        ["", "read", "/data/ünï/\u{1F4A9}", "a\0b\n\"\\\u{7f}\u{1b}[31m", "'; DROP TABLE gaps; --", "%"];
    let text = TEXTS[value.unsigned_abs() as usize % TEXTS.len()];
    if value % 5 == 0 { format!("{text}{value}") } else { text.to_owned() }
}
