//! Tables that fit where they are shown.
//!
//! Cells are broken at blanks at most, and never inside an identifier, a fingerprint or an address. What does not fit loses the
//! columns that matter least, and says which; what does not fit even so is shown as one block of lines for each row. Without a
//! width, as in a pipe, there are no boxes, and each row is one line with everything in it.

use std::borrow::Cow;
use std::fmt;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, Width};
use unicode_width::UnicodeWidthStr as _;

use super::{tone, wrap};

/// A column of sentences is not made narrower than this: columns that matter less go first.
const PROSE_MIN: usize = 24;
/// How far a value stands to the right that does not fit beside its label.
const INDENT: usize = 2;
/// What is between columns that have no lines between them.
const GAP: &str = "  ";

/// A column: its head, and what may be done to it for want of width.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    head: Cow<'static, str>,
    is_prose: bool,
    /// Its cells are times, of which parts of seconds do not matter.
    pub(crate) is_time: bool,
    /// Its cells say how long it was between two times.
    pub(crate) is_span: bool,
    is_name: bool,
    spare: u8,
}

impl Column {
    /// One whose cells are never broken, such as identifiers, addresses, times and numbers.
    pub(crate) const fn whole(head: &'static str) -> Self {
        Self {
            head: Cow::Borrowed(head),
            is_prose: false,
            is_time: false,
            is_span: false,
            is_name: false,
            spare: 0,
        }
    }

    /// One of times, to the second.
    pub(crate) const fn time(head: &'static str) -> Self {
        let mut column = Self::whole(head);
        column.is_time = true;
        column
    }

    /// One of how long it was from one time to another.
    pub(crate) const fn span(head: &'static str) -> Self {
        let mut column = Self::whole(head);
        column.is_span = true;
        column
    }

    /// One whose cells may be broken at blanks.
    pub(crate) const fn prose(head: &'static str) -> Self {
        let mut column = Self::whole(head);
        column.is_prose = true;
        column
    }

    /// The one with which the next command is called, where that is not the first.
    pub(crate) const fn name(mut self) -> Self {
        self.is_name = true;
        self
    }

    /// May be left out, those with a greater number first.
    pub(crate) const fn spare(mut self, order: u8) -> Self {
        self.spare = order;
        self
    }
}

impl From<&'static str> for Column {
    fn from(head: &'static str) -> Self {
        Self::whole(head)
    }
}

/// Rows of cells under heads.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    /// Its head is a property like those in its rows.
    is_record: bool,
}

impl Table {
    /// An empty one.
    pub(crate) fn of(columns: impl IntoIterator<Item = impl Into<Column>>) -> Self {
        Self {
            columns: columns.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            is_record: false,
        }
    }

    /// One thing: its identifier as the head, and a row for each property.
    pub(crate) fn record(title: &'static str, id: &str) -> Self {
        let mut value = Column::prose("");
        value.head = Cow::Owned(id.to_owned());
        Self {
            is_record: true,
            ..Self::of([Column::whole(title), value])
        }
    }

    /// One more row, with a cell for each column.
    pub(crate) fn add_row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As it is shown within this many columns; without a number as wide as it is.
    pub(crate) fn at(&self, width: Option<usize>) -> String {
        self.fitted(width, "")
    }

    /// As the terminal has room for it, by a command that shows all of it with `-o wide`.
    pub(super) fn narrowed(&self, width: Option<usize>) -> String {
        self.fitted(width, " `-o wide` shows every column.")
    }

    /// What is left out is followed by `advice`.
    fn fitted(&self, width: Option<usize>, advice: &str) -> String {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let Some(width) = width else {
            return self.plain();
        };
        let fits = |shown: &[usize]| self.widths(shown, width).is_some();
        if !fits(&shown) {
            // Nothing is lost with a column that has nothing in it.
            shown.retain(|&column| {
                self.columns[column].spare == 0 || self.cells(column).any(|cell| !cell.is_empty())
            });
        }
        let all = shown.clone();
        loop {
            if fits(&shown) {
                self.put_back(&all, &mut shown, width);
            }
            if let Some(widths) = self.widths(&shown, width) {
                return self.drawn(&shown, &widths) + &self.left_out(&shown, width, advice);
            }
            let sparest = shown
                .iter()
                .copied()
                .filter(|&column| self.columns[column].spare > 0)
                .max_by_key(|&column| self.columns[column].spare);
            match sparest {
                Some(sparest) => shown.retain(|&column| column != sparest),
                None => return self.stacked(width),
            }
        }
    }

    /// Shows again what was left out before a wider column was, and has room without it: those that matter most first.
    fn put_back(&self, all: &[usize], shown: &mut Vec<usize>, width: usize) {
        let mut missing: Vec<usize> = all
            .iter()
            .copied()
            .filter(|column| !shown.contains(column))
            .collect();
        missing.sort_by_key(|&column| self.columns[column].spare);
        for column in missing {
            let with: Vec<usize> = all
                .iter()
                .copied()
                .filter(|one| *one == column || shown.contains(one))
                .collect();
            if self.widths(&with, width).is_some() {
                *shown = with;
            }
        }
    }

    /// A line each row with everything in it, in columns without lines between them.
    pub(crate) fn plain(&self) -> String {
        let heads: Vec<String> = self
            .columns
            .iter()
            .map(|column| column.head.to_string())
            .collect();
        let rows = self
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.replace('\n', GAP)).collect());
        let rows: Vec<Vec<String>> = rows.collect();
        let widths: Vec<usize> = (0..heads.len())
            .map(|column| {
                wrap::widest(
                    rows.iter()
                        .chain([&heads])
                        .filter_map(|row| Some(row.get(column)?.as_str())),
                )
            })
            .collect();
        let line = |row: &[String], dressed: &dyn Fn(&str) -> String| {
            let padded = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{}{}", dressed(cell), " ".repeat(width - cell.width())));
            padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
        };
        let mut lines = vec![line(&heads, &|head| tone::styled(head, tone::STRONG))];
        lines.extend(rows.iter().map(|row| line(row, &tone::dressed)));
        lines.join("\n")
    }

    /// The names of what is in it, one a line.
    pub(crate) fn names(&self) -> String {
        if self.is_record {
            return self
                .columns
                .get(1)
                .map(|value| value.head.to_string())
                .unwrap_or_default();
        }
        let named = self.columns.iter().position(|column| column.is_name).unwrap_or(0);
        let names = self.rows.iter().filter_map(|row| row.get(named));
        names.map(|name| on_one_line(name)).collect::<Vec<_>>().join("\n")
    }

    /// For scripts: a line of heads and one each row, with tabs between cells and nowhere else.
    pub(crate) fn tsv(&self) -> String {
        let line =
            |cells: &mut dyn Iterator<Item = &str>| cells.map(on_one_line).collect::<Vec<_>>().join("\t");
        let mut lines = vec![line(&mut self.columns.iter().map(|column| &*column.head))];
        lines.extend(
            self.rows
                .iter()
                .map(|row| line(&mut row.iter().map(String::as_str))),
        );
        lines.join("\n")
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        let cells = self.rows.iter().filter_map(move |row| row.get(column));
        cells.flat_map(|cell| cell.split('\n'))
    }

    /// Columns that this one needs, and those with which nothing of it is broken.
    fn needs(&self, column: usize) -> (usize, usize) {
        let Column { head, is_prose, .. } = &self.columns[column];
        let natural = wrap::widest(self.cells(column)).max(head.width());
        let cells = if *is_prose {
            let words = wrap::widest(self.cells(column).flat_map(|cell| cell.split(' ')));
            words.max(natural.min(PROSE_MIN))
        } else {
            wrap::widest(self.cells(column))
        };
        (cells.max(wrap::widest(head.split(' '))), natural)
    }

    /// How wide each of the shown columns is within the width of all, if that can be.
    fn widths(&self, shown: &[usize], width: usize) -> Option<Vec<usize>> {
        let (mut widths, natural): (Vec<_>, Vec<_>) = shown.iter().map(|&column| self.needs(column)).unzip();
        // A blank on each side of a cell, a line before each, and one at the end.
        let frame = 3 * shown.len() + 1;
        let mut left = width.checked_sub(frame + widths.iter().sum::<usize>())?;
        loop {
            let wanting: Vec<usize> = (0..widths.len())
                .filter(|&index| widths[index] < natural[index])
                .collect();
            if left == 0 || wanting.is_empty() {
                return Some(widths);
            }
            let share = (left / wanting.len()).max(1);
            for index in wanting {
                let more = share.min(natural[index] - widths[index]).min(left);
                widths[index] += more;
                left -= more;
            }
        }
    }

    fn drawn(&self, shown: &[usize], widths: &[usize]) -> String {
        let mut drawing = comfy_table::Table::new();
        drawing
            .load_style(UTF8_FULL_CONDENSED)
            .set_content_arrangement(ContentArrangement::Disabled)
            // What is written takes colours away where there are to be none.
            .force_no_tty()
            .enforce_styling()
            .set_header(
                shown
                    .iter()
                    .map(|&column| Cell::new(&self.columns[column].head).add_attribute(Attribute::Bold)),
            );
        for row in &self.rows {
            drawing.add_row(shown.iter().map(|&column| {
                let text = row.get(column).map(String::as_str).unwrap_or_default();
                let cell = Cell::new(text);
                match tone::of_state(text) {
                    Some(colour) => cell.fg(colour),
                    None => cell,
                }
            }));
        }
        for (column, width) in drawing.column_iter_mut().zip(widths) {
            let with_blanks = u16::try_from(width + 2).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(with_blanks)));
        }
        drawing.to_string()
    }

    /// A line that names the columns that are not shown, if there are any with something in them.
    fn left_out(&self, shown: &[usize], width: usize, advice: &str) -> String {
        let heads: Vec<&str> = (0..self.columns.len())
            .filter(|column| !shown.contains(column) && self.cells(*column).any(|cell| !cell.is_empty()))
            .map(|column| &*self.columns[column].head)
            .collect();
        if heads.is_empty() {
            return String::new();
        }
        let said = format!("Too narrow to show: {}.{advice}", heads.join(", "));
        format!("\n{}", wrap::lines(&said, width).join("\n"))
    }

    /// A block for each row, with everything that is in it; a record is one block.
    fn stacked(&self, width: usize) -> String {
        let heads = || self.columns.iter().map(|column| &*column.head);
        let blocks: Vec<Vec<Pair<'_>>> = if self.is_record {
            let rows = self
                .rows
                .iter()
                .map(|row| row.iter().map(String::as_str).collect());
            let pairs = std::iter::once(heads().collect::<Vec<_>>()).chain(rows);
            vec![
                pairs
                    .filter_map(|pair| Some((*pair.first()?, *pair.get(1)?, true)))
                    .collect(),
            ]
        } else {
            let pairs = |row| heads().zip(row).zip(&self.columns);
            let rows = self.rows.iter().map(|row| pairs(row.iter().map(String::as_str)));
            rows.map(|pairs| {
                pairs
                    .map(|((label, value), column)| (label, value, column.is_prose))
                    .collect()
            })
            .collect()
        };
        let labels = wrap::widest(blocks.iter().flatten().map(|(label, ..)| *label)) + ": ".len();
        let blocks: Vec<String> = blocks.iter().map(|pairs| block(pairs, labels, width)).collect();
        blocks.join("\n\n")
    }
}

/// The text with a symbol in place of each control character, so that a cell has no tab and no line end in it.
fn on_one_line(text: &str) -> String {
    let symbol = |character: char| match character {
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        other => domain::foreign_text::harmless_char(other),
    };
    text.chars().map(symbol).collect()
}

/// A label, its value, and whether that may be broken at blanks.
type Pair<'a> = (&'a str, &'a str, bool);

/// Lines of label and value. What does not fit beside its label stands below it.
fn block(pairs: &[Pair<'_>], labels: usize, width: usize) -> String {
    let mut text = Vec::new();
    for (label, value, is_prose) in pairs.iter().filter(|(_, value, _)| !value.is_empty()) {
        let broken_at = if *is_prose { [' ', '\n'] } else { ['\n', '\n'] };
        let fits_beside = labels + wrap::widest(value.split(broken_at)) <= width;
        let indent = if fits_beside { labels } else { INDENT };
        let room = if *is_prose {
            width.saturating_sub(indent)
        } else {
            usize::MAX
        };
        let mut lines = wrap::lines(value, room).into_iter();
        let mut head = format!("{}:", tone::styled(label, tone::STRONG));
        if fits_beside {
            head.push_str(&" ".repeat(labels.saturating_sub(label.width() + 1)));
            head.push_str(&lines.next().unwrap_or_default());
        }
        text.push(head);
        text.extend(lines.map(|line| format!("{}{line}", " ".repeat(indent))));
    }
    text.join("\n")
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.at(super::width()))
    }
}

#[cfg(test)]
pub(crate) mod tests;
