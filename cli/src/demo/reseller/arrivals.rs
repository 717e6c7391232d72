//! What arrived at the receiver in this run, and what it thought of it.

use std::collections::HashMap;
use std::fmt;

use simulators::receiver::{Received, Verdict};

use super::mix;
use super::subscriptions;
use crate::webhooks::Webhooks;

/// What was seen of the arrivals.
#[derive(Debug)]
pub(super) struct Arrivals {
    requests: usize,
    challenges: usize,
    identifiers: usize,
    /// Neither verified nor a challenge that came before the receiver had the secret.
    doubtful: usize,
    accepted_twice: usize,
    /// Sorted, in milliseconds.
    delays: Vec<i64>,
}

impl Arrivals {
    /// Asks the receiver.
    pub(super) async fn observe(webhooks: &Webhooks, run: &str) -> anyhow::Result<Self> {
        let paths = subscriptions::paths(run);
        let mut received = webhooks.received().await?;
        received.retain(|request| request.path.starts_with(&paths));
        Ok(Self::of(&received, &mix::crowd(run)))
    }

    fn of(received: &[Received], crowd: &str) -> Self {
        let (challenges, notifications): (Vec<_>, Vec<_>) = received
            .iter()
            .partition(|request| request.event_type == "postrider.verification");
        let mut accepted = HashMap::<&str, usize>::new();
        for request in &notifications {
            let is_accepted = request.status.is_some_and(|status| (200..300).contains(&status));
            *accepted.entry(request.id.as_str()).or_default() += usize::from(is_accepted);
        }
        let of_crowd = notifications
            .iter()
            .filter(|request| request.id.starts_with(crowd));
        let mut delays: Vec<_> = of_crowd.filter_map(|request| request.delay_millis).collect();
        delays.sort_unstable();
        Self {
            requests: notifications.len(),
            challenges: challenges.len(),
            identifiers: accepted.len(),
            doubtful: notifications
                .iter()
                .filter(|request| request.verdict != Verdict::Verified)
                .count(),
            accepted_twice: accepted.values().filter(|times| **times > 1).count(),
            delays,
        }
    }

    /// What is not as it should be, if anything.
    pub(super) fn deviation(&self) -> Option<String> {
        if self.requests == 0 || self.challenges == 0 {
            return Some(
                "the receiver has seen nothing of this; is it the one that the events were sent to?"
                    .to_owned(),
            );
        }
        if self.doubtful > 0 {
            return Some(format!(
                "the receiver doubts the signatures of {} requests",
                self.doubtful
            ));
        }
        // At least once is what is promised, but nothing broke here that could be a reason.
        (self.accepted_twice > 0).then(|| format!("{} events were delivered twice", self.accepted_twice))
    }

    fn quantile(&self, percent: usize) -> String {
        let place = (self.delays.len() * percent).div_ceil(100).saturating_sub(1);
        self.delays
            .get(place)
            .map_or_else(|| "unknown".to_owned(), |delay| format!("{delay} ms"))
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The receiver got {} requests about {} events, {} of them with a signature that it doubts, and {} challenges; {} accepted twice.\n\
             From event to arrival, while there was a crowd: half of them within {}, 99 % within {}.",
            self.requests,
            self.identifiers,
            self.doubtful,
            self.challenges,
            self.accepted_twice,
            self.quantile(50),
            self.quantile(99),
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(id: &str, event_type: &str, verdict: &str, status: u16, delay: i64) -> Received {
        serde_json::from_value(json!({
            "number": 1, "receivedAt": "2025-07-20T08:26:40Z", "arrivalMicros": 1, "method": "POST", "path": "/",
            "headers": {}, "body": "", "id": id, "type": event_type, "arrivals": 1, "verdict": verdict,
            "delayMillis": delay, "outcome": "answered", "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn what_arrived_is_counted_and_judged() {
        let challenge = request("c", "postrider.verification", "unchecked", 200, 0);
        let good = request("crowd-1", "domain.created", "verified", 200, 7);
        let failed = request("crowd-2", "domain.created", "verified", 503, 9);
        let forged = request("x", "domain.created", "forged", 401, 1);
        let of = |requests: &[&Received]| {
            let requests: Vec<_> = requests.iter().copied().cloned().collect();
            Arrivals::of(&requests, "crowd-")
        };
        let fine = of(&[&challenge, &good, &failed]);
        assert_eq!((fine.deviation(), fine.requests, fine.identifiers), (None, 2, 2));
        assert_eq!(
            (fine.quantile(50), fine.quantile(99)),
            ("7 ms".to_owned(), "9 ms".to_owned())
        );
        assert!(of(&[&challenge]).deviation().unwrap().contains("nothing"));
        assert!(
            of(&[&challenge, &good, &forged])
                .deviation()
                .unwrap()
                .contains("1 requests")
        );
        assert!(
            of(&[&challenge, &good, &good])
                .deviation()
                .unwrap()
                .contains("twice")
        );
        assert_eq!(of(&[]).quantile(50), "unknown");
    }
}
