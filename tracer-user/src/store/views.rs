//! `views.sql`: ready questions to a bundle, in DuckDB's dialect.

/// The file that each bundle carries.
pub const VIEWS_SQL: &str = include_str!("views.sql");
