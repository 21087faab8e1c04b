//! How rows become a Parquet file.

use std::fs::File;
use std::io::BufWriter;

use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::basic::{Compression, Encoding, Type, ZstdLevel};
use parquet::errors::Result;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::table::Table;

/// Rows in one row group at most: what a reader must hold to read any of it.
const ROW_GROUP: usize = 64 * 1024;

/// Writes `rows`, sorted by the table's time, as a whole Parquet file and returns it, not yet synced.
pub fn encode<T: Table>(rows: &[T], file: File) -> Result<File> {
    let schema = T::schema();
    let descriptor = ArrowSchemaConverter::new().convert(&schema)?;
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("gtrace ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_dictionary_enabled(false);
    for (index, column) in descriptor.columns().iter().enumerate() {
        let path = column.path().clone();
        properties = match column.physical_type() {
            // Times, and ids that count up. Not BYTE_STREAM_SPLIT: DuckDB cannot read it for integers.
            Type::INT64 => properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            // Thread ids, CPUs, descriptors, grid sizes: few values, often repeated. On a recorded timeline a dictionary
            // needs 0.5 bytes a thread id, deltas 0.85. Where values turn out to be many, deltas they are.
            Type::INT32 => properties
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
                .set_column_dictionary_enabled(path, true),
            Type::BYTE_ARRAY => properties.set_column_dictionary_enabled(path, true),
            _ => properties,
        };
        // Nobody skips row groups by what the elements of a list are, and strings take as long to compare as to write.
        if column.path().parts().len() > 1 {
            properties =
                properties.set_column_statistics_enabled(column.path().clone(), EnabledStatistics::None);
        }
        if column.path().parts() == [T::SORT_COLUMN] {
            let sorting = SortingColumn { column_idx: index as i32, descending: false, nulls_first: false };
            properties = properties.set_sorting_columns(Some(vec![sorting]));
        }
    }
    let mut writer = ArrowWriter::try_new(BufWriter::new(file), schema, Some(properties.build()))?;
    // An empty batch makes no row group; a file of none is a table with no rows.
    for chunk in rows.chunks(ROW_GROUP) {
        writer.write(&T::to_batch(chunk))?;
    }
    let file = writer.into_inner()?;
    file.into_inner().map_err(|error| error.into_error().into())
}
