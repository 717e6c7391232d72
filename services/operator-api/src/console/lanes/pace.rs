//! The pace of the push lane as a strip: two minutes by the second.

use explain::words;

use crate::console::markup::{Markup, escape, fill};
use crate::history::{AnswersDocument, PaceDocument, PaceSecondDocument};

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

    /// What Swrve answered, in a sentence; nothing when it has not.
    pub(super) fn answered(&self) -> Option<String> {
        let said = said(&self.0.answers);
        (!said.is_empty()).then(|| format!("Swrve's answers in these two minutes: {said}."))
    }

    /// What Swrve answered in a second.
    pub(super) fn answers(&self, second: &PaceSecondDocument) -> String {
        said(&second.answers)
    }

    /// Whether anything was sent or answered in a second.
    pub(super) fn is_of_note(&self, second: &PaceSecondDocument) -> bool {
        second.sends > 0 || !self.answers(second).is_empty()
    }

    /// The seconds as bars of what Swrve answered: the classes stand on each other.
    pub(super) fn answers_strip(&self) -> Markup {
        let all = |answers: &AnswersDocument| classes(answers).iter().map(|(_, _, count)| count).sum::<u64>();
        let seconds = &self.0.seconds;
        let most = seconds.iter().map(|second| all(&second.answers)).max();
        let most = most.unwrap_or_default().max(1);
        let mut bars = String::new();
        for (place, second) in seconds.iter().enumerate() {
            let x = place * STEP;
            let mut below = 0;
            for (_, tone, count) in classes(&second.answers).iter().filter(|(_, _, count)| *count > 0) {
                let foot = (below * HEIGHT).div_ceil(most);
                below += count;
                // One among hundreds is to be seen.
                let height = (below * HEIGHT)
                    .div_ceil(most)
                    .saturating_sub(foot)
                    .clamp(2, HEIGHT);
                let y = (HEIGHT - foot).saturating_sub(height);
                bars.push_str(&format!(
                    r#"<rect {fill} x="{x}" y="{y}" width="3" height="{height}"/>"#,
                    fill = fill(tone)
                ));
            }
        }
        self.drawn(&bars, &self.answered().unwrap_or_default())
    }

    fn drawn(&self, bars: &str, label: &str) -> Markup {
        Markup(format!(
            r#"<svg class="spark" viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{label}">{bars}<rect class="fill-track" x="0" y="47" width="{width}" height="1"/></svg>"#,
            width = self.0.seconds.len() * STEP,
            label = escape(label),
        ))
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
                r#"<rect {fill} x="{x}" y="{y}" width="3" height="{height}"/>"#,
                fill = fill(tone)
            ));
        }
        self.drawn(&bars, &self.sentence())
    }
}

/// The classes of answers: what each is called, its tone, and how many.
fn classes(answers: &AnswersDocument) -> [(&'static str, &'static str, u64); 4] {
    [
        ("2xx", "ok", answers.taken),
        ("4xx", "hold", answers.refused),
        ("5xx and others", "bad", answers.failed),
        ("none", "warn", answers.missing),
    ]
}

fn said(answers: &AnswersDocument) -> String {
    let classes = classes(answers);
    let some = classes.iter().filter(|(_, _, count)| *count > 0);
    let some: Vec<_> = some
        .map(|(class, _, count)| format!("{class} {}", words::number(*count)))
        .collect();
    some.join(", ")
}
