//! `docs/schema.md`, from the declarations of the tables.

use std::fmt::Write as _;

use arrow_schema::DataType;

use super::schema::{SCHEMA_MAJOR, SCHEMA_MINOR, TableVisitor, visit_tables};
use super::table::Table;

const INTRODUCTION: &str = "\
A recording is a folder (`NAME.gtrace`). Each table is a folder in it, with Parquet files `part-00000.parquet`,
`part-00001.parquet`, …; `meta.json` says what was recorded and how. `SELECT * FROM 'x.gtrace/gpu_ops/*.parquet'` works in
DuckDB, Polars, pyarrow and Spark as it lies there, at any moment of the recording: every table has a part from the first
moment, and a part has its name only when it is whole. See [sql.md](sql.md) for questions to ask.

- Columns named `*_ns` that are moments are nanoseconds of the recorded host's `CLOCK_MONOTONIC`; add `utc_offset_ns` of
  `meta.json` for UTC. Those that are lengths are nanoseconds.
- Intervals are half-open, `[start, end)`.
- Rows of a part are sorted by the column named with the table. Parts overlap in time: a row is written when its interval
  has ended.
- Strings are dictionary columns, and valid UTF-8: names and paths from the kernel and the program are converted lossily.
  They may hold anything else, control characters included.
- `gaps` and `gap_segments` are the analysis' and made anew by `gtrace analyze`; so is `threads.role`. All else is as
  recorded.
- A reader refuses a newer major version and reads every older one; a newer minor version only adds tables and columns.
";

/// The text of `docs/schema.md`.
#[must_use]
pub fn schema_markdown() -> String {
    let mut page = Page(format!(
        "<!-- Generated from tracer-user/src/store/schema by `GTRACE_BLESS=1 cargo test -p gtrace schema_page`. -->\n\
         # The tables of a recording\n\nVersion {SCHEMA_MAJOR}.{SCHEMA_MINOR}.\n\n{INTRODUCTION}"
    ));
    visit_tables(&mut page);
    page.0
}

struct Page(String);

impl TableVisitor for Page {
    fn visit<T: Table>(&mut self) {
        let text = &mut self.0;
        // Writing to a string cannot fail.
        let _ = write!(text, "\n## `{}`\n\n{} Sorted by `{}`.\n\n", T::NAME, cell(T::DOC), T::SORT_COLUMN);
        text.push_str("| column | type | NULL | |\n|---|---|---|---|\n");
        for field in T::fields() {
            let null = if field.nullable { "yes" } else { "" };
            let kind = type_name(&field.data_type);
            let _ = writeln!(text, "| `{}` | {kind} | {null} | {} |", field.name, cell(field.doc));
        }
    }
}

/// A doc comment as one line of a table: its lines were put together as they stood, each with its leading blank.
fn cell(doc: &str) -> String {
    doc.trim().replace('|', "\\|")
}

fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Int32 => "int32".into(),
        DataType::Int64 => "int64".into(),
        DataType::Float64 => "double".into(),
        DataType::Boolean => "bool".into(),
        DataType::Dictionary(_, value) if **value == DataType::Utf8 => "string".into(),
        DataType::List(item) => format!("list of {}", type_name(item.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| {
                    let null = if field.is_nullable() { "?" } else { "" };
                    format!("`{}` {}{null}", field.name(), type_name(field.data_type()))
                })
                .collect();
            format!("struct ({})", fields.join(", "))
        }
        other => other.to_string(),
    }
}
