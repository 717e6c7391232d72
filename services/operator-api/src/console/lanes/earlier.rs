//! What had stopped a lane and is over. What goes on is told by the lane itself.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use explain::words;
use store::push::SWRVE;

use crate::history::{HoldDocument, PausePeriodDocument};

/// Most of a lane that are shown, the newest ones.
const SHOWN: usize = 10;

/// A hold or a pause that is over.
pub(super) struct Earlier {
    /// `HELD` or `PAUSED`.
    pub(super) state: &'static str,
    pub(super) since: DateTime<Utc>,
    until: DateTime<Utc>,
    /// None of a hold, which begins and ends by itself.
    pub(super) paused_by: Option<String>,
    /// The note of a pause; of a hold, what was out of order and how it failed last.
    pub(super) why: String,
}

impl Earlier {
    /// How long it lasted, in seconds.
    pub(super) fn seconds(&self) -> u64 {
        u64::try_from((self.until - self.since).num_seconds()).unwrap_or(0)
    }
}

/// Those of a lane's history, the one first that ended last.
pub(super) fn earlier(holds: Vec<HoldDocument>, pauses: Vec<PausePeriodDocument>) -> Vec<Earlier> {
    let held = |hold: HoldDocument| {
        // Held until it worked again, as stories say it: what had waited was sent after that.
        let ended = hold.ended_at?;
        let until = hold.answered_at.unwrap_or(ended);
        let what = if hold.class == SWRVE {
            "Swrve was out of order".to_owned()
        } else {
            format!("most endpoints failed in the class {}", hold.class)
        };
        let probes = words::of(hold.probes, "probe", "probes");
        Some(Earlier {
            state: "HELD",
            since: hold.since,
            until,
            paused_by: None,
            why: format!("{what}; {probes}, the last failure: {}", hold.last_answer),
        })
    };
    let paused = |pause: PausePeriodDocument| {
        Some(Earlier {
            state: "PAUSED",
            since: pause.paused_at,
            until: pause.resumed_at?,
            paused_by: Some(pause.paused_by),
            why: pause.note,
        })
    };
    let held = holds.into_iter().filter_map(held);
    let mut over: Vec<_> = held.chain(pauses.into_iter().filter_map(paused)).collect();
    over.sort_by_key(|stop| Reverse(stop.until));
    over.truncate(SHOWN);
    over
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    fn hold(since: i64, ended: Option<i64>) -> HoldDocument {
        HoldDocument {
            class: "TIMEOUT".to_owned(),
            since: at(since),
            answered_at: None,
            ended_at: ended.map(at),
            probes: 1,
            last_answer: "no answer in time".to_owned(),
        }
    }

    fn pause(since: i64, resumed: Option<i64>) -> PausePeriodDocument {
        PausePeriodDocument {
            paused_by: "maria".to_owned(),
            note: "incident 17".to_owned(),
            paused_at: at(since),
            resumed_at: resumed.map(at),
            until: None,
        }
    }

    #[test]
    fn what_goes_on_is_left_out_and_what_ended_last_comes_first() {
        let mut answered = hold(0, Some(11));
        answered.answered_at = Some(at(9));
        let holds = vec![answered, hold(20, None)];
        let pauses = vec![pause(1, Some(3)), pause(5, Some(12)), pause(21, None)];
        let over = earlier(holds, pauses);
        let told: Vec<_> = over.iter().map(|stop| (stop.state, stop.seconds())).collect();
        assert_eq!(told, [("PAUSED", 420), ("HELD", 540), ("PAUSED", 120)]);
        assert_eq!(over[0].paused_by.as_deref(), Some("maria"));
        let why = "most endpoints failed in the class TIMEOUT; 1 probe, the last failure: no answer in time";
        assert_eq!((over[1].paused_by.as_deref(), &*over[1].why), (None, why));
    }

    #[test]
    fn no_more_are_shown_than_a_page_has_room_for() {
        let pauses = (0..50).map(|minute| pause(minute, Some(minute + 1))).collect();
        let over = earlier(Vec::new(), pauses);
        assert_eq!((over.len(), over[0].since), (SHOWN, at(49)));
    }
}
