//! How each Rust type of a row becomes an Arrow column and comes back.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int32Builder, Int64Builder, PrimitiveBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, StringArray};
use arrow_schema::DataType;
use foldhash::fast::RandomState;

use crate::event::{
    ContextId, CorrelationId, DeviceId, DurationNs, GapId, MonoNs, OpId, Pid, Recent, RequestId, RowId,
    StreamId, Text, Tid,
};

/// A column does not have the type that the schema says.
#[derive(Clone, Debug, thiserror::Error)]
#[error("column `{column}` has type {found}, expected {expected}")]
pub struct ColumnTypeError {
    /// The column's name.
    pub column: String,
    /// Its type in the file.
    pub found: DataType,
    /// Its type by the schema.
    pub expected: DataType,
}

/// A type that a field of a row can have.
pub trait Column: Sized {
    /// Collects values.
    type Builder: Default;
    /// A column opened for reading.
    type Reader;
    /// Whether it may be NULL.
    const NULLABLE: bool;

    /// Its Arrow type.
    fn data_type() -> DataType;
    /// Adds a value.
    fn append(&self, builder: &mut Self::Builder);
    /// Adds a NULL (of the parent's making: a struct that is absent).
    fn append_null(builder: &mut Self::Builder);
    /// Ends a column.
    fn finish(builder: Self::Builder) -> ArrayRef;
    /// Opens a column; `name` is for the error.
    ///
    /// # Errors
    /// The column has another type.
    fn open(name: &str, column: &ArrayRef) -> Result<Self::Reader, ColumnTypeError>;
    /// The value in row `row`; a NULL where none is allowed reads as the type's default.
    fn get(reader: &Self::Reader, row: usize) -> Self;
}

fn expect_type<T: Column>(name: &str, column: &ArrayRef) -> Result<(), ColumnTypeError> {
    let expected = T::data_type();
    if *column.data_type() == expected {
        return Ok(());
    }
    Err(ColumnTypeError { column: name.into(), found: column.data_type().clone(), expected })
}

macro_rules! integer_column {
    ($($type:ident: $arrow:ident $builder:ident [$wrap:expr, $unwrap:expr];)*) => {$(
        impl Column for $type {
            type Builder = $builder;
            type Reader = PrimitiveArray<$arrow>;
            const NULLABLE: bool = false;

            fn data_type() -> DataType {
                <$arrow as arrow_array::ArrowPrimitiveType>::DATA_TYPE
            }
            fn append(&self, builder: &mut $builder) {
                #[allow(clippy::redundant_closure_call, reason = "the macro takes both functions as closures")]
                builder.append_value($unwrap(self));
            }
            fn append_null(builder: &mut $builder) {
                builder.append_null();
            }
            fn finish(mut builder: $builder) -> ArrayRef {
                Arc::new(builder.finish())
            }
            fn open(name: &str, column: &ArrayRef) -> Result<Self::Reader, ColumnTypeError> {
                expect_type::<Self>(name, column)?;
                Ok(column.as_primitive::<$arrow>().clone())
            }
            fn get(reader: &Self::Reader, row: usize) -> Self {
                #[allow(clippy::redundant_closure_call, reason = "the macro takes both functions as closures")]
                $wrap(if reader.is_null(row) { Default::default() } else { reader.value(row) })
            }
        }
    )*};
}

integer_column! {
    i32: Int32Type Int32Builder [|v| v, |v: &Self| *v];
    i64: Int64Type Int64Builder [|v| v, |v: &Self| *v];
    Pid: Int32Type Int32Builder [Self, |v: &Self| v.0];
    Tid: Int32Type Int32Builder [Self, |v: &Self| v.0];
    DeviceId: Int32Type Int32Builder [Self, |v: &Self| v.0];
    ContextId: Int64Type Int64Builder [Self, |v: &Self| v.0];
    StreamId: Int64Type Int64Builder [Self, |v: &Self| v.0];
    CorrelationId: Int64Type Int64Builder [Self, |v: &Self| v.0];
    OpId: Int64Type Int64Builder [Self, |v: &Self| v.0];
    GapId: Int64Type Int64Builder [Self, |v: &Self| v.0];
    RequestId: Int64Type Int64Builder [Self, |v: &Self| v.0];
    RowId: Int64Type Int64Builder [Self, |v: &Self| v.0];
    MonoNs: Int64Type Int64Builder [Self, |v: &Self| v.0];
    DurationNs: Int64Type Int64Builder [Self, |v: &Self| v.0];
}

impl Column for f64 {
    type Builder = PrimitiveBuilder<arrow_array::types::Float64Type>;
    type Reader = PrimitiveArray<arrow_array::types::Float64Type>;
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Float64
    }
    fn append(&self, builder: &mut Self::Builder) {
        builder.append_value(*self);
    }
    fn append_null(builder: &mut Self::Builder) {
        builder.append_null();
    }
    fn finish(mut builder: Self::Builder) -> ArrayRef {
        Arc::new(builder.finish())
    }
    fn open(name: &str, column: &ArrayRef) -> Result<Self::Reader, ColumnTypeError> {
        expect_type::<Self>(name, column)?;
        Ok(column.as_primitive().clone())
    }
    fn get(reader: &Self::Reader, row: usize) -> Self {
        if reader.is_null(row) { 0.0 } else { reader.value(row) }
    }
}

impl Column for bool {
    type Builder = BooleanBuilder;
    type Reader = BooleanArray;
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Boolean
    }
    fn append(&self, builder: &mut BooleanBuilder) {
        builder.append_value(*self);
    }
    fn append_null(builder: &mut BooleanBuilder) {
        builder.append_null();
    }
    fn finish(mut builder: BooleanBuilder) -> ArrayRef {
        Arc::new(builder.finish())
    }
    fn open(name: &str, column: &ArrayRef) -> Result<BooleanArray, ColumnTypeError> {
        expect_type::<Self>(name, column)?;
        Ok(column.as_boolean().clone())
    }
    fn get(reader: &BooleanArray, row: usize) -> Self {
        !reader.is_null(row) && reader.value(row)
    }
}

/// Collects strings into a dictionary.
pub struct TextBuilder {
    keys: Int32Builder,
    values: StringBuilder,
    by_text: HashMap<Text, i32, RandomState>,
    recent: Recent<i32>,
}

impl Default for TextBuilder {
    fn default() -> Self {
        Self {
            keys: Int32Builder::new(),
            values: StringBuilder::new(),
            by_text: HashMap::default(),
            recent: Recent::default(),
        }
    }
}

impl TextBuilder {
    fn append(&mut self, text: &Text) {
        let key = self.recent.get(text).unwrap_or_else(|| {
            let next = self.by_text.len() as i32;
            let key = *self.by_text.entry(text.clone()).or_insert(next);
            if key == next {
                self.values.append_value(text.as_str());
            }
            self.recent.put(text, key);
            key
        });
        self.keys.append_value(key);
    }
}

/// A dictionary column opened for reading: each distinct string is made once.
pub struct TextReader {
    keys: DictionaryArray<Int32Type>,
    values: Vec<Text>,
}

impl Column for Text {
    type Builder = TextBuilder;
    type Reader = TextReader;
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }
    fn append(&self, builder: &mut Self::Builder) {
        builder.append(self);
    }
    fn append_null(builder: &mut Self::Builder) {
        builder.keys.append_null();
    }
    fn finish(mut builder: Self::Builder) -> ArrayRef {
        let values = Arc::new(builder.values.finish());
        #[allow(clippy::expect_used, reason = "each key was given out with its value")]
        Arc::new(DictionaryArray::try_new(builder.keys.finish(), values).expect("keys have values"))
    }
    fn open(name: &str, column: &ArrayRef) -> Result<TextReader, ColumnTypeError> {
        expect_type::<Self>(name, column)?;
        let keys = column.as_dictionary::<Int32Type>().clone();
        let strings: &StringArray = keys.values().as_string();
        let values = strings.iter().map(|string| Text::from(string.unwrap_or_default())).collect();
        Ok(TextReader { keys, values })
    }
    fn get(reader: &TextReader, row: usize) -> Self {
        reader.keys.key(row).and_then(|key| reader.values.get(key).cloned()).unwrap_or_default()
    }
}

/// A nullable column opened for reading.
pub struct OptionReader<T: Column> {
    column: ArrayRef,
    inner: T::Reader,
}

impl<T: Column> Column for Option<T> {
    type Builder = T::Builder;
    type Reader = OptionReader<T>;
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        T::data_type()
    }
    fn append(&self, builder: &mut T::Builder) {
        match self {
            Some(value) => value.append(builder),
            None => T::append_null(builder),
        }
    }
    fn append_null(builder: &mut T::Builder) {
        T::append_null(builder);
    }
    fn finish(builder: T::Builder) -> ArrayRef {
        T::finish(builder)
    }
    fn open(name: &str, column: &ArrayRef) -> Result<Self::Reader, ColumnTypeError> {
        Ok(OptionReader { column: column.clone(), inner: T::open(name, column)? })
    }
    fn get(reader: &Self::Reader, row: usize) -> Self {
        reader.column.is_valid(row).then(|| T::get(&reader.inner, row))
    }
}
