//! What a table is, and the macro that declares one: a row struct, its Arrow schema, both conversions and its
//! documentation from a single place.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use super::column::{Column, ColumnTypeError};
use crate::event::MonoNs;

/// A column of a table, for the schema and for the generated documentation.
#[derive(Clone, Debug)]
pub struct FieldDoc {
    /// The column's name.
    pub name: &'static str,
    /// What it holds.
    pub doc: &'static str,
    /// Its Arrow type.
    pub data_type: DataType,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// A batch cannot be read as rows of a table.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RowError {
    /// The column is not there.
    #[error("table `{table}` has no column `{column}`")]
    MissingColumn {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
    },
    /// The column has another type.
    #[error("table `{table}`: {source}")]
    ColumnType {
        /// The table.
        table: &'static str,
        /// Which column, and its types.
        source: ColumnTypeError,
    },
}

/// A table: one kind of row.
pub trait Table: Sized + Clone + PartialEq + std::fmt::Debug + Send + 'static {
    /// Its name: the file's or folder's name in the bundle, and the name in SQL.
    const NAME: &'static str;
    /// What a row is.
    const DOC: &'static str;
    /// The column by which its rows are sorted.
    const SORT_COLUMN: &'static str;

    /// Its columns, in order.
    fn fields() -> Vec<FieldDoc>;
    /// Makes columns from rows.
    fn to_batch(rows: &[Self]) -> RecordBatch;
    /// Makes rows from columns. Columns are found by name; unknown ones are ignored, missing nullable ones read as NULL.
    ///
    /// # Errors
    /// A required column is missing or has another type.
    fn from_batch(batch: &RecordBatch) -> Result<Vec<Self>, RowError>;
    /// The time by which its rows are sorted.
    fn sort_key(&self) -> MonoNs;

    /// Its Arrow schema.
    #[must_use]
    fn schema() -> SchemaRef {
        let fields: Vec<Field> = Self::fields()
            .into_iter()
            .map(|field| Field::new(field.name, field.data_type, field.nullable))
            .collect();
        Arc::new(Schema::new(fields))
    }
}

/// A struct that is an element of a list column.
pub trait Element: Sized + Clone {
    /// Collects elements.
    type Builder: Default;

    /// Its fields, in order.
    fn fields() -> Vec<FieldDoc>;
    /// Adds an element.
    fn append(&self, builder: &mut Self::Builder);
    /// Makes a struct array from what was collected.
    fn finish(builder: Self::Builder) -> StructArray;
    /// Makes elements from a struct array.
    ///
    /// # Errors
    /// A field is missing or has another type.
    fn from_struct(array: &StructArray) -> Result<Vec<Self>, ColumnTypeError>;
}

impl<E: Element + 'static> Column for Vec<E> {
    type Builder = ListColumnBuilder<E>;
    type Reader = Vec<Vec<E>>;
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::List(Arc::new(Field::new("item", DataType::Struct(element_fields::<E>()), true)))
    }
    fn append(&self, builder: &mut Self::Builder) {
        builder.lengths.push(self.len());
        for element in self {
            element.append(&mut builder.elements);
        }
    }
    fn append_null(builder: &mut Self::Builder) {
        builder.lengths.push(0);
    }
    fn finish(builder: Self::Builder) -> ArrayRef {
        let values = E::finish(builder.elements);
        let offsets = arrow_buffer::OffsetBuffer::from_lengths(builder.lengths);
        let field = Arc::new(Field::new("item", DataType::Struct(element_fields::<E>()), true));
        Arc::new(arrow_array::ListArray::new(field, offsets, Arc::new(values), None))
    }
    fn open(name: &str, column: &ArrayRef) -> Result<Self::Reader, ColumnTypeError> {
        let mismatch = || ColumnTypeError {
            column: name.into(),
            found: column.data_type().clone(),
            expected: Self::data_type(),
        };
        let list = column.as_list_opt::<i32>().ok_or_else(mismatch)?;
        let values = list.values().as_struct_opt().ok_or_else(mismatch)?;
        let elements = E::from_struct(values)?;
        let mut lists = Vec::with_capacity(list.len());
        for window in list.value_offsets().windows(2) {
            let (from, to) = (window[0] as usize, window[1] as usize);
            lists.push(elements.get(from..to).ok_or_else(mismatch)?.to_vec());
        }
        Ok(lists)
    }
    fn get(reader: &Self::Reader, row: usize) -> Self {
        reader.get(row).cloned().unwrap_or_default()
    }
}

/// Collects lists of elements.
pub struct ListColumnBuilder<E: Element> {
    lengths: Vec<usize>,
    elements: E::Builder,
}

impl<E: Element> Default for ListColumnBuilder<E> {
    fn default() -> Self {
        Self { lengths: Vec::new(), elements: E::Builder::default() }
    }
}

fn element_fields<E: Element>() -> Fields {
    E::fields().into_iter().map(|field| Field::new(field.name, field.data_type, field.nullable)).collect()
}

/// Declares a table. See `schema/` for its use.
macro_rules! table {
    (
        $(#[doc = $doc:literal])*
        pub struct $row:ident in $name:literal, sorted by $key:ident {
            $( $(#[doc = $field_doc:literal])* $field:ident: $type:ty, )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $row {
            $( $(#[doc = $field_doc])* pub $field: $type, )*
        }

        impl $crate::store::table::Table for $row {
            const NAME: &'static str = $name;
            const DOC: &'static str = concat!($($doc),*);
            const SORT_COLUMN: &'static str = stringify!($key);

            fn fields() -> Vec<$crate::store::table::FieldDoc> {
                vec![$( $crate::store::table::FieldDoc {
                    name: stringify!($field),
                    doc: concat!($($field_doc),*),
                    data_type: <$type as $crate::store::column::Column>::data_type(),
                    nullable: <$type as $crate::store::column::Column>::NULLABLE,
                }, )*]
            }

            fn to_batch(rows: &[Self]) -> arrow_array::RecordBatch {
                $( let mut $field = <<$type as $crate::store::column::Column>::Builder as Default>::default(); )*
                for row in rows {
                    $( $crate::store::column::Column::append(&row.$field, &mut $field); )*
                }
                let columns = vec![$( <$type as $crate::store::column::Column>::finish($field), )*];
                #[allow(clippy::expect_used, reason = "columns are made from the very types that the schema names")]
                arrow_array::RecordBatch::try_new(<Self as $crate::store::table::Table>::schema(), columns)
                    .expect("columns match the schema they are made from")
            }

            fn from_batch(
                batch: &arrow_array::RecordBatch,
            ) -> Result<Vec<Self>, $crate::store::table::RowError> {
                $( let $field = $crate::store::table::open_column::<$type>(
                    batch,
                    <Self as $crate::store::table::Table>::NAME,
                    stringify!($field),
                )?; )*
                Ok((0..batch.num_rows())
                    .map(|index| Self {
                        $( $field: <$type as $crate::store::column::Column>::get(&$field, index), )*
                    })
                    .collect())
            }

            fn sort_key(&self) -> $crate::event::MonoNs {
                self.$key
            }
        }
    };
}

/// Declares the element type of a list column.
macro_rules! element {
    (
        $(#[doc = $doc:literal])*
        pub struct $element:ident {
            $( $(#[doc = $field_doc:literal])* $field:ident: $type:ty, )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $element {
            $( $(#[doc = $field_doc])* pub $field: $type, )*
        }

        impl $crate::store::table::Element for $element {
            type Builder = ( $( <$type as $crate::store::column::Column>::Builder, )* );

            fn fields() -> Vec<$crate::store::table::FieldDoc> {
                vec![$( $crate::store::table::FieldDoc {
                    name: stringify!($field),
                    doc: concat!($($field_doc),*),
                    data_type: <$type as $crate::store::column::Column>::data_type(),
                    nullable: <$type as $crate::store::column::Column>::NULLABLE,
                }, )*]
            }

            fn append(&self, ($( $field, )*): &mut Self::Builder) {
                $( $crate::store::column::Column::append(&self.$field, $field); )*
            }

            fn finish(($( $field, )*): Self::Builder) -> arrow_array::StructArray {
                let fields: arrow_schema::Fields = <Self as $crate::store::table::Element>::fields()
                    .into_iter()
                    .map(|field| arrow_schema::Field::new(field.name, field.data_type, field.nullable))
                    .collect();
                arrow_array::StructArray::new(
                    fields,
                    vec![$( <$type as $crate::store::column::Column>::finish($field), )*],
                    None,
                )
            }

            fn from_struct(
                array: &arrow_array::StructArray,
            ) -> Result<Vec<Self>, $crate::store::column::ColumnTypeError> {
                $( let $field = $crate::store::table::open_field::<$type>(array, stringify!($field))?; )*
                Ok((0..arrow_array::Array::len(array))
                    .map(|index| Self {
                        $( $field: <$type as $crate::store::column::Column>::get(&$field, index), )*
                    })
                    .collect())
            }
        }
    };
}

pub(crate) use {element, table};

/// Opens the column `name` of a batch; a missing nullable one reads as all NULL.
///
/// # Errors
/// It is missing and required, or has another type.
pub fn open_column<T: Column>(
    batch: &RecordBatch,
    table: &'static str,
    name: &'static str,
) -> Result<T::Reader, RowError> {
    let absent;
    let column = match batch.column_by_name(name) {
        Some(column) => column,
        None if T::NULLABLE => {
            absent = arrow_array::new_null_array(&T::data_type(), batch.num_rows());
            &absent
        }
        None => return Err(RowError::MissingColumn { table, column: name }),
    };
    T::open(name, column).map_err(|source| RowError::ColumnType { table, source })
}

/// Opens the field `name` of a struct array.
///
/// # Errors
/// It is missing or has another type.
pub fn open_field<T: Column>(array: &StructArray, name: &'static str) -> Result<T::Reader, ColumnTypeError> {
    let column = array.column_by_name(name).ok_or_else(|| ColumnTypeError {
        column: name.into(),
        found: DataType::Null,
        expected: T::data_type(),
    })?;
    T::open(name, column)
}
