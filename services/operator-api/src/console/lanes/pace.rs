//! The pace of the push lane as a strip: two minutes by the second.

use explain::words;

use crate::console::markup::{Markup, escape};
use crate::history::{PaceDocument, PaceSecondDocument};

const HEIGHT: u64 = 48;
/// How wide a second is, with the room beside it.
const STEP: usize = 4;

/// The pace, as the page shows it.
pub(super) struct Pace(pub(super) PaceDocument);

impl Pace {
    pub(super) fn seconds(&self) -> &[PaceSecondDocument] {
        &self.0.seconds
    }

    /// Whether two sends were closer to each other than they may be.
    pub(super) fn is_too_fast(&self) -> bool {
        self.0
            .smallest_gap_micros
            .is_some_and(|smallest| smallest < self.0.gap_micros)
    }

    /// Microseconds as milliseconds.
    pub(super) fn millis(&self, micros: &u64) -> String {
        format!("{}.{:03} ms", micros / 1_000, micros % 1_000)
    }

    /// What the two minutes were, in a sentence.
    pub(super) fn sentence(&self) -> String {
        let it = &self.0;
        if it.sends == 0 {
            return "Nothing was sent in the last two minutes.".to_owned();
        }
        let most = it
            .seconds
            .iter()
            .map(|second| second.sends)
            .max()
            .unwrap_or_default();
        let in_flight = it.seconds.iter().map(|second| second.in_flight).max();
        let gap = it.smallest_gap_micros.map_or_else(
            || "one send has no gap".to_owned(),
            |smallest| {
                format!(
                    "the smallest gap was {}, at least {} is kept",
                    self.millis(&smallest),
                    self.millis(&it.gap_micros)
                )
            },
        );
        format!(
            "{} sends in two minutes, at most {} in a second; {gap}; at most {} in flight.",
            words::number(it.sends),
            words::number(most),
            words::number(in_flight.unwrap_or_default().into()),
        )
    }

    /// The seconds as bars beside each other: how many were sent in each. One in which two were too close is marked, as is a change of leaders.
    pub(super) fn strip(&self) -> Markup {
        let seconds = &self.0.seconds;
        let most = seconds
            .iter()
            .map(|second| second.sends)
            .max()
            .unwrap_or_default()
            .max(1);
        let mut bars = String::new();
        let mut before = None;
        for (place, second) in seconds.iter().enumerate() {
            let x = place * STEP;
            if before.is_some() && second.process.is_some() && before != second.process {
                bars.push_str(&format!(
                    r#"<rect class="fill-hold" x="{x}" y="0" width="1" height="{HEIGHT}"/>"#
                ));
            }
            before = second.process.or(before);
            if second.sends == 0 {
                continue;
            }
            let too_close = second
                .smallest_gap_micros
                .is_some_and(|gap| gap < self.0.gap_micros);
            let tone = if too_close { "bad" } else { "ok" };
            let height = (second.sends * HEIGHT).div_ceil(most).min(HEIGHT);
            let y = HEIGHT - height;
            bars.push_str(&format!(
                r#"<rect class="fill-{tone}" x="{x}" y="{y}" width="3" height="{height}"/>"#
            ));
        }
        Markup(format!(
            r#"<svg class="spark" viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{label}">{bars}<rect class="fill-track" x="0" y="47" width="{width}" height="1"/></svg>"#,
            width = seconds.len() * STEP,
            label = escape(&self.sentence()),
        ))
    }
}
