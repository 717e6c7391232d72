//! In which form a result is printed, and the options that choose it.
//!
//! A command has the options of what it can print; clap refuses every other form with the list of those that there are.

use std::io;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::Table;

/// How a result is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// As a table that fits the terminal; plain lines in a pipe.
    #[default]
    Table,
    /// Every column, a line each row, however wide.
    Wide,
    /// As JSON, just as the API answers.
    Json,
    /// Only names: what the next command is called with, one a line.
    Name,
    /// Values with tabs between them: of a list below a line of names, of one thing a line each property.
    Tsv,
}

impl Form {
    /// Whether it is read by people, who are told more than is in one table.
    pub(crate) fn is_for_people(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    /// Prints one document: as it is, or as the table that is made of it.
    pub(crate) fn print(
        self,
        document: &impl Serialize,
        table: impl FnOnce() -> Table,
    ) -> anyhow::Result<()> {
        match self {
            Self::Json => super::json(document),
            _ => self.table(&table()),
        }
    }

    /// Whether rows can be printed before those that come after them are known.
    pub(crate) fn is_row_by_row(self) -> bool {
        matches!(self, Self::Name | Self::Tsv)
    }

    /// Prints rows for scripts, below the names of the columns if they are the first ones; says whether a reader is left.
    pub(crate) fn rows(self, table: &Table, are_first: bool) -> io::Result<bool> {
        let text = match self {
            Self::Tsv => table.tsv(),
            _ => table.names(),
        };
        let rows = match text.split_once('\n') {
            _ if self != Self::Tsv || are_first => text.as_str(),
            Some((_, rows)) => rows,
            None => "",
        };
        if rows.is_empty() {
            return Ok(true);
        }
        // What looks like a colour in a value is a value.
        super::exact(format_args!("{rows}\n"))
    }

    /// Prints a table. Of an empty one scripts get the names of its columns, and people nothing.
    pub(crate) fn table(self, table: &Table) -> anyhow::Result<()> {
        let text = match self {
            Self::Table if !table.is_empty() => table.narrowed(super::width()),
            Self::Wide if !table.is_empty() => table.plain(),
            Self::Name | Self::Tsv => {
                self.rows(table, true)?;
                return Ok(());
            }
            Self::Table | Self::Wide | Self::Json => return Ok(()),
        };
        super::result(text)?;
        Ok(())
    }
}

/// The options of commands that print a list or one thing.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct FormArgs {
    /// How the result is printed.
    #[arg(
        short,
        long,
        value_name = "FORM",
        value_enum,
        default_value_t,
        hide_default_value = true
    )]
    output: Form,
    /// As JSON, just as the API answers; the same as -o json.
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

impl FormArgs {
    pub(crate) fn form(self) -> Form {
        if self.json { Form::Json } else { self.output }
    }
}

/// The options of commands that tell something in words, or do something and say that it is done.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct JsonArgs {
    /// How the result is printed; in words when not given.
    #[arg(short, long, value_name = "FORM", value_parser = ["json"])]
    output: Option<String>,
    /// As JSON; the same as -o json.
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

impl JsonArgs {
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.output.is_some()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct List {
        #[command(flatten)]
        form: FormArgs,
    }

    #[derive(Debug, Parser)]
    struct Told {
        #[command(flatten)]
        form: JsonArgs,
    }

    #[test]
    fn a_form_has_one_short_name_and_json_a_second_one() {
        let form = |arguments: &[&str]| List::try_parse_from(arguments).map(|list| list.form.form());
        assert_eq!(form(&["list"]).unwrap(), Form::Table);
        assert_eq!(form(&["list", "--json"]).unwrap(), Form::Json);
        assert_eq!(form(&["list", "-o", "tsv"]).unwrap(), Form::Tsv);
        assert!(form(&["list", "-o", "name", "--json"]).is_err());
    }

    #[test]
    fn a_form_that_has_no_meaning_for_a_command_is_a_usage_error_that_names_the_others() {
        let refused = Told::try_parse_from(["told", "-o", "tsv"]).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
        assert!(
            refused.to_string().contains("[possible values: json]"),
            "{refused}"
        );
        for arguments in [["told", "--json"].as_slice(), &["told", "--output", "json"]] {
            assert!(Told::try_parse_from(arguments).unwrap().form.is_json());
        }
    }
}
