//! An export as a database: which tables and columns this version of Nsight Systems wrote, and rows with what is missing
//! read as NULL.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

/// An opened export.
pub struct Database {
    connection: Connection,
    tables: HashMap<String, HashSet<String>>,
}

/// Values of one row, in the order of the columns asked for.
pub struct Row<'a>(&'a rusqlite::Row<'a>);

impl Row<'_> {
    /// An integer. `None`: NULL, absent in this version, or of another type.
    pub fn integer(&self, column: usize) -> Option<i64> {
        match self.0.get_ref(column) {
            Ok(ValueRef::Integer(value)) => Some(value),
            _ => None,
        }
    }

    /// A text, lossily.
    pub fn text(&self, column: usize) -> Option<String> {
        match self.0.get_ref(column) {
            Ok(ValueRef::Text(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }
}

impl Database {
    /// Opens the file `path`, which is not written to.
    ///
    /// # Errors
    /// It is no database, or its list of tables cannot be read.
    pub fn open(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        // The file is somebody else's: no functions or views of its making run.
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        let mut tables: HashMap<String, HashSet<String>> = HashMap::new();
        {
            let mut names = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
            let mut rows = names.query([])?;
            while let Some(row) = rows.next()? {
                if let Some(name) = Row(row).text(0) {
                    tables.insert(name, HashSet::new());
                }
            }
        }
        for (table, columns) in &mut tables {
            let mut info = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
            let mut rows = info.query([table])?;
            while let Some(row) = rows.next()? {
                columns.extend(Row(row).text(0));
            }
        }
        Ok(Self { connection, tables })
    }

    /// Whether there is such a table.
    pub fn has(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    /// Gives each row of `table` to `row`, with `columns` in their order; those that this version does not have are NULL.
    /// `rest` follows the table's name. Of a table that is not there, no rows.
    ///
    /// # Errors
    /// The database is damaged. What came before was given.
    pub fn each(
        &self,
        table: &str,
        columns: &[&str],
        rest: &str,
        mut row: impl FnMut(Row<'_>),
    ) -> rusqlite::Result<()> {
        let Some(there) = self.tables.get(table) else { return Ok(()) };
        let columns: Vec<String> = columns
            .iter()
            .map(|column| if there.contains(*column) { format!("\"{column}\"") } else { "NULL".into() })
            .collect();
        let mut statement =
            self.connection.prepare(&format!("SELECT {} FROM \"{table}\" {rest}", columns.join(", ")))?;
        let mut rows = statement.query([])?;
        while let Some(next) = rows.next()? {
            row(Row(next));
        }
        Ok(())
    }
}
