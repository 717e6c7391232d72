//! What the machine does without Postrider.

use anyhow::Result;

use crate::args::Args;
use crate::floor::{self, Inserts};
use crate::report::{Row, Section, Unit};
use crate::rig::Rig;
use crate::table::with_unit;
use crate::tell;

/// The numbers, for the rows that they stand beside.
#[derive(Debug)]
pub(crate) struct Floors {
    echoes: f64,
    batches: f64,
    single: f64,
}

impl Floors {
    /// What a request that stores one row can be compared with.
    pub(crate) fn of_ingest(&self) -> String {
        let rate = |value| with_unit(value, Unit::PerSecond);
        format!(
            "bare HTTP {}; bare rows in batches of 64 {}; a commit for each row {}",
            rate(self.echoes),
            rate(self.batches),
            rate(self.single)
        )
    }
}

/// Measures all floors.
pub(crate) async fn measure(args: &Args, rig: &Rig) -> Result<(Section, Floors)> {
    let mut section = Section::new("floors");
    let mut row = |measure: String, value| section.row(Row::new(measure, value, Unit::PerSecond));
    let of_rows = async |writers, batch| floor::inserts(&rig.database_url, Inserts { writers, batch }).await;
    tell("floors: PostgreSQL");
    let batches = of_rows(4, 64).await?;
    row(
        "PostgreSQL: rows in batches of 64 from 4 connections".to_owned(),
        batches,
    );
    row(
        "PostgreSQL: rows in batches of 256 from 4 connections".to_owned(),
        of_rows(4, 256).await?,
    );
    let single = of_rows(64, 1).await?;
    row(
        "PostgreSQL: a commit for each row, from 64 connections".to_owned(),
        single,
    );
    tell("floors: HTTP");
    let echoes = floor::echoes(rig, args.connections).await?;
    row(
        format!(
            "HTTP: requests to a server that only answers, {} connections",
            args.connections
        ),
        echoes,
    );
    tell("floors: AMQP");
    let published = floor::confirmed_publishes(&rig.amqp_url, &rig.name_of("floor")).await?;
    row(
        "RabbitMQ: confirmed publishes to a quorum queue, 1,000 unconfirmed".to_owned(),
        published,
    );
    Ok((
        section,
        Floors {
            echoes,
            batches,
            single,
        },
    ))
}
