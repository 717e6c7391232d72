//! What the machine does of the lane's work without Postrider, measured in the same run.

use anyhow::Result;

use crate::args::Args;
use crate::floor::{self, Inserts};
use crate::receiver::Receiver;
use crate::report::{Row, Section, Unit};
use crate::rig::Rig;
use crate::table::with_unit;
use crate::tell;

/// The numbers, for the rows that they stand beside.
pub(super) struct Floors {
    posts: f64,
    events: f64,
    relayed: f64,
}

impl Floors {
    /// What a notification that is stored, queued and delivered can be compared with.
    pub(super) fn of_delivery(&self) -> String {
        let rate = |value| with_unit(value, Unit::PerSecond);
        format!(
            "bare HTTP out {}; bare event and notification rows in batches of 64 {}; bare publish and consume {}",
            rate(self.posts),
            rate(self.events),
            rate(self.relayed)
        )
    }
}

pub(super) async fn measure(
    args: &Args,
    rig: &Rig,
    receiver: &Receiver,
    section: &mut Section,
) -> Result<Floors> {
    tell("reseller: floors");
    let posts = floor::posts(receiver.address(), args.connections).await?;
    let batches = Inserts {
        writers: 4,
        batch: 64,
    };
    let events = floor::events(&rig.database_url, batches).await?;
    let relayed = floor::relayed(&rig.amqp_url, &rig.name_of("relay")).await?;
    for (measure, value) in [
        (
            format!(
                "floor: HTTP requests to the receiver, {} connections",
                args.connections
            ),
            posts,
        ),
        (
            "floor: events with a notification each, in batches of 64 from 4 connections".to_owned(),
            events,
        ),
        (
            "floor: messages through a quorum queue, confirmed, consumed and acknowledged".to_owned(),
            relayed,
        ),
    ] {
        section.row(Row::new(measure, value, Unit::PerSecond));
    }
    Ok(Floors {
        posts,
        events,
        relayed,
    })
}
