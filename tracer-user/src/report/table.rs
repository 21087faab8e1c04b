//! Text in aligned columns.

use super::escape::{shorten_end, shorten_middle, width};

/// How a column is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
    /// Text that gives way where the line is too long: its middle is cut out.
    Flexible,
    /// The same for a list: its end is cut off.
    List,
}

impl Align {
    fn gives_way(self) -> bool {
        matches!(self, Self::Flexible | Self::List)
    }
}

/// Rows of cells, all already escaped.
#[derive(Debug)]
pub struct TextTable {
    columns: Vec<Align>,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Between columns.
const GUTTER: usize = 2;
/// A flexible column keeps at least so much.
const NARROWEST: usize = 16;

impl TextTable {
    /// An empty one.
    #[must_use]
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            columns: columns.iter().map(|(_, align)| *align).collect(),
            header: columns.iter().map(|(title, _)| (*title).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, with a cell for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether its columns have titles.
    #[must_use]
    pub fn has_header(&self) -> bool {
        self.header.iter().any(|title| !title.is_empty())
    }

    /// Its lines, each at most `columns` wide if the flexible columns can give way so far: header (without it if all
    /// titles are empty), then rows.
    #[must_use]
    pub fn lines(&self, columns: usize) -> Vec<String> {
        let lines: Vec<&Vec<String>> =
            self.has_header().then_some(&self.header).into_iter().chain(&self.rows).collect();
        let mut widths = vec![0; self.columns.len()];
        for line in &lines {
            for (widest, cell) in widths.iter_mut().zip(line.iter()) {
                *widest = width(cell).max(*widest);
            }
        }
        self.give_way(&mut widths, columns);
        lines.into_iter().map(|line| self.line(line, &widths)).collect()
    }

    fn give_way(&self, widths: &mut [usize], columns: usize) {
        let total = widths.iter().sum::<usize>() + GUTTER * widths.len().saturating_sub(1);
        let mut excess = total.saturating_sub(columns);
        while excess > 0 {
            let flexible = self.columns.iter().zip(widths.iter_mut()).filter(|(align, _)| align.gives_way());
            let Some((_, widest)) =
                flexible.max_by_key(|(_, width)| **width).filter(|(_, width)| **width > NARROWEST)
            else {
                return;
            };
            *widest -= 1;
            excess -= 1;
        }
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (index, ((cell, align), room)) in cells.iter().zip(&self.columns).zip(widths).enumerate() {
            if index > 0 {
                line.push_str(&" ".repeat(GUTTER));
            }
            let cell = match align {
                Align::List => shorten_end(cell, *room),
                _ => shorten_middle(cell, *room),
            };
            let padding = " ".repeat(room.saturating_sub(width(&cell)));
            match align {
                Align::Right => {
                    line.push_str(&padding);
                    line.push_str(&cell);
                }
                Align::Left | Align::Flexible | Align::List => {
                    line.push_str(&cell);
                    line.push_str(&padding);
                }
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TextTable {
        let mut table = TextTable::new(&[("name", Align::Flexible), ("time", Align::Right)]);
        table.row(vec!["/data/数据/shard-0001-of-1000.tar".into(), "3.10 ms".into()]);
        table.row(vec!["x".into(), "812 ns".into()]);
        table
    }

    #[test]
    fn columns_line_up_whatever_the_script() {
        let lines = table().lines(100);
        assert!(lines.iter().all(|line| width(line) == width(&lines[0])), "{lines:?}");
        assert!(lines[1].ends_with("3.10 ms") && lines[2].ends_with(" 812 ns"));
    }

    #[test]
    fn the_flexible_column_gives_way() {
        let lines = table().lines(30);
        assert!(lines.iter().all(|line| width(line) <= 30), "{lines:?}");
        assert!(lines[1].contains('…') && lines[1].ends_with("3.10 ms"));
    }
}
