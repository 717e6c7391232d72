//! What the loop does while a class of failures is held: it sends the subscriptions concerned nothing but one probe a second, and comes
//! back for what waits for them when they answer.

use std::collections::HashMap;

use domain::notification::OutageChange;
use store::webhook::SpillReason;

use super::claimer::Claimed;
use super::run_loop::RunLoop;
use super::scheduler::Fetch;
use super::under_way::{Done, UnderWay};

impl RunLoop {
    /// Does as it was found out meanwhile.
    pub(crate) fn heed_outages(&mut self) {
        for change in self.outages.take_changes() {
            match change {
                OutageChange::Withheld(subscription) => self.scheduler.withhold(subscription),
                OutageChange::Released(subscription) => self.scheduler.resume(subscription),
            }
        }
        let withheld = self.scheduler.take_withheld();
        self.put_aside(withheld, SpillReason::Withheld);
    }

    /// Begins the next probe, if there is anything to be probed: with the oldest notification of the next subscription of which
    /// nothing is under way.
    pub(crate) fn probe(&mut self) {
        let scheduler = &self.scheduler;
        let Some(subscription) = self
            .outages
            .next_probe(|subscription| scheduler.is_idle(subscription))
        else {
            return;
        };
        self.settling += 1;
        let claimer = self.claimer.clone();
        let probe = self.scheduler.probe(subscription);
        let probing = UnderWay::new(Done::Probed(probe, None), self.done.clone());
        tokio::spawn(async move { probing.ended(claimer.fetch(&[probe]).await) });
    }

    pub(crate) fn begin_probe(&mut self, fetch: Fetch, claimed: Option<Claimed>) {
        self.settling -= 1;
        let found = claimed.as_ref().map(|claimed| claimed.claims.claimed.len());
        self.scheduler.probed(fetch, found.unwrap_or(0));
        match found {
            // It has nothing, or nothing that may be sent now: whatever comes later is tried as always.
            Some(0) => self.outages.nothing_waits(fetch.subscription),
            Some(_) => self.outages.probing(fetch.subscription),
            None => {}
        }
        self.begin(claimed.unwrap_or_default(), &mut HashMap::new());
    }
}
