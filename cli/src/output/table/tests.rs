//! Whatever is in a table and however wide the terminal is.

use anstream::adapter::strip_str;
use proptest::prelude::*;

use super::*;

/// The terminals that tables are looked at on.
const WIDTHS: [usize; 4] = [80, 100, 140, 200];

/// A table as it is shown on each of these terminals, without colours.
pub(crate) fn at_widths(table: &Table) -> String {
    let shown = WIDTHS.map(|width| format!("{width} columns\n{}", strip_str(&table.at(Some(width)))));
    shown.join("\n\n")
}

fn plain(table: &Table, width: impl Into<Option<usize>>) -> String {
    strip_str(&table.at(width.into())).to_string()
}

const ID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}";
const ADDRESS: &str = "https://[a-z]{1,20}\\.example(:[0-9]{4})?/[a-z/?&=-]{0,60}";
const MAIL: &str = "[a-z.+]{1,30}@[a-z-]{1,20}\\.example";
const FINGERPRINT: &str = "delivery/http/[0-9]{3}/[a-f0-9 ]{0,15}[a-f0-9]";
const SENTENCE: &str = "([A-Za-z0-9,.]{1,12} ){0,30}";

prop_compose! {
    fn rows()(rows in prop::collection::vec((ID, ADDRESS, FINGERPRINT, SENTENCE, MAIL), 1..4)) -> Vec<[String; 5]> {
        rows.into_iter().map(|(id, to, fingerprint, sentence, mail)| {
            [id, to, fingerprint, format!("{sentence}{mail}"), "GIVEN_UP".to_owned()]
        }).collect()
    }
}

fn list(rows: &[[String; 5]]) -> Table {
    let mut table = Table::of([
        Column::whole("id"),
        Column::whole("address").spare(1),
        Column::whole("fingerprint").spare(2),
        Column::prose("detail").spare(3),
        Column::whole("status"),
    ]);
    for row in rows {
        table.add_row(row.clone());
    }
    table
}

proptest! {
    #[test]
    fn what_can_be_copied_stays_in_one_piece_or_is_said_to_be_missing(rows in rows(), width in 40_usize..260) {
        let shown = plain(&list(&rows), width);
        let missing = |head: &str| shown.lines().any(|line| line.starts_with("Too narrow")) && {
            let note = shown.split("Too narrow").last().unwrap_or_default();
            note.contains(head)
        };
        for [id, address, fingerprint, detail, status] in &rows {
            prop_assert!(shown.contains(id), "{shown}");
            prop_assert!(shown.contains(address) || missing("address"), "{shown}");
            prop_assert!(shown.contains(fingerprint) || missing("fingerprint"), "{shown}");
            prop_assert!(shown.contains(status), "{shown}");
            for word in detail.split(' ') {
                prop_assert!(shown.contains(word) || missing("detail"), "{word}: {shown}");
            }
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_but_for_a_word_that_is(rows in rows(), width in 40_usize..260) {
        for line in plain(&list(&rows), width).lines() {
            prop_assert!(line.width() <= width || !line.trim().contains(' '), "{line}");
        }
    }

    #[test]
    fn a_record_keeps_every_word_of_every_value(rows in rows(), width in 40_usize..260) {
        for [id, address, fingerprint, detail, status] in &rows {
            let mut table = Table::record("notification", id);
            for (name, value) in [("to", address), ("reason", fingerprint), ("explanation", detail), ("status", status)] {
                table.add_row([name, value.as_str()]);
            }
            let shown = plain(&table, width);
            let words = [id, address, fingerprint, detail, status].map(|value| value.split(' '));
            for word in words.into_iter().flatten() {
                prop_assert!(shown.contains(word), "{word}: {shown}");
            }
        }
    }

    #[test]
    fn without_a_terminal_a_row_is_one_line_with_everything_in_it(rows in rows()) {
        let shown = plain(&list(&rows), None);
        for row in &rows {
            let whole = |line: &str| row.iter().all(|cell| line.contains(cell.as_str()));
            prop_assert!(shown.lines().any(whole), "{shown}");
        }
    }
}

#[test]
fn the_columns_that_matter_least_go_first_and_are_named() {
    let row = [
        "1",
        "https://receiver.example/hooks",
        "swrve/503",
        "It failed.",
        "RETRY",
    ]
    .map(str::to_owned);
    let table = list(&[row]);
    let shown = plain(&table, 60);
    assert!(shown.contains("https://receiver.example/hooks"), "{shown}");
    assert!(
        shown.ends_with("Too narrow to show: fingerprint, detail."),
        "{shown}"
    );
    let advised = strip_str(&table.narrowed(Some(60))).to_string();
    assert!(
        advised.ends_with("Too narrow to show: fingerprint, detail. `-o wide` shows\nevery column."),
        "{advised}"
    );
    let fits = strip_str(&table.narrowed(Some(200))).to_string();
    assert!(!fits.contains("-o wide"), "{fits}");
}

#[test]
fn a_row_that_does_not_fit_at_all_becomes_a_block_of_labels_and_values() {
    let mut table = Table::of([
        Column::whole("id"),
        Column::whole("subscription"),
        Column::prose("note"),
    ]);
    for note in ["why it was done", ""] {
        table.add_row([
            "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d",
            "01a1fd84-191a-7334-a6ae-613178d80d71",
            note,
        ]);
    }
    insta::assert_snapshot!(format!("{}\n\n{}", plain(&table, 60), plain(&table, 40)));
}

#[test]
fn states_have_colours_and_what_is_only_called_so_has_none() {
    let mut table = Table::of(["status"]);
    table.add_row(["GIVEN_UP"]);
    assert!(table.at(None).contains("\u{1b}["));
    let dressed = |cell: &str| tone::of_state(cell).is_some();
    assert_eq!(
        ["SENT", "ready, leads the push lane", "not SENT", ""].map(dressed),
        [true, true, false, false]
    );
}

#[test]
fn a_pipe_has_columns_without_boxes_and_scripts_have_tabs_and_names() {
    let mut table = Table::of([
        Column::time("at"),
        Column::whole("subject").name(),
        Column::prose("note"),
    ]);
    table.add_row([
        "2026-11-21T12:00:00Z",
        "push/1",
        "first\nsecond\tthird\u{7f}\u{202e}",
    ]);
    table.add_row(["2026-11-21T12:00:01Z", "lane/push", ""]);
    let plain = "at                    subject    note\n\
                 2026-11-21T12:00:00Z  push/1     first  second\tthird\u{7f}\u{202e}\n\
                 2026-11-21T12:00:01Z  lane/push";
    assert_eq!(
        strip_str(&table.plain()).to_string(),
        strip_str(plain).to_string()
    );
    assert_eq!(table.names(), "push/1\nlane/push");
    assert_eq!(
        table.tsv(),
        "at\tsubject\tnote\n\
         2026-11-21T12:00:00Z\tpush/1\tfirst␊second␉third␡\u{fffd}\n\
         2026-11-21T12:00:01Z\tlane/push\t"
    );
}

#[test]
fn the_name_of_a_record_is_its_identifier_and_of_a_list_the_first_column() {
    let mut record = Table::record("push", "019aa2f0");
    record.add_row(["status", "SENT"]);
    assert_eq!(record.names(), "019aa2f0");
    assert_eq!(record.tsv(), "push\t019aa2f0\nstatus\tSENT");
    let mut list = Table::of(["id", "state"]);
    assert_eq!(list.names(), "");
    list.add_row(["7", "OPEN"]);
    assert_eq!(list.names(), "7");
}

proptest! {
    #[test]
    fn each_row_of_tsv_is_one_line_with_a_cell_for_each_column(rows in prop::collection::vec((".*", ".*", ".*"), 0..5)) {
        let mut table = Table::of(["a", "b", "c"]);
        for (a, b, c) in &rows {
            table.add_row([a.as_str(), b, c]);
        }
        let shown = table.tsv();
        prop_assert_eq!(shown.split('\n').count(), rows.len() + 1);
        prop_assert!(shown.split('\n').all(|line| line.split('\t').count() == 3), "{}", shown);
        prop_assert!(shown.chars().all(|c| matches!(c, '\t' | '\n') || !c.is_control()), "{}", shown);
    }
}
