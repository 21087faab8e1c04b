//! `views.sql`: ready questions to a bundle, in DuckDB's dialect.

use std::fmt::Write as _;

use super::schema::{TableVisitor, visit_tables};
use super::table::Table;

const QUESTIONS: &str = include_str!("views.sql");

/// The file that each bundle carries: a view for each table, then the questions.
#[must_use]
pub fn views_sql() -> String {
    let mut views = Views(String::from(
        "-- Views over the tables of this recording, for DuckDB. Paths are relative to the recording's folder:\n\
         --   cd x.gtrace && duckdb -init views.sql\n\
         -- or, from anywhere: SET file_search_path = '/path/to/x.gtrace'; and then this file.\n\n",
    ));
    visit_tables(&mut views);
    views.0.push('\n');
    views.0.push_str(QUESTIONS);
    views.0
}

struct Views(String);

impl TableVisitor for Views {
    fn visit<T: Table>(&mut self) {
        // Writing to a string cannot fail. Parts of an older version may lack columns: by name.
        let _ = writeln!(
            self.0,
            "CREATE OR REPLACE VIEW {table} AS FROM read_parquet('{table}/*.parquet', union_by_name = true);",
            table = T::NAME
        );
    }
}
