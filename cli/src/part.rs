//! Which part of a list a command asks for: the same options wherever a list comes in parts.

use clap::Args;

/// Which part of a list.
#[derive(Debug, Clone, Args)]
pub(crate) struct Part {
    /// How many.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Where the previous part ended.
    #[arg(long)]
    cursor: Option<String>,
}

impl Part {
    /// As a query string takes it.
    pub(crate) fn query(&self) -> [(&'static str, Option<String>); 2] {
        [
            ("limit", Some(self.limit.to_string())),
            ("cursor", self.cursor.clone()),
        ]
    }
}
