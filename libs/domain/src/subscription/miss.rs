//! Why a subscription got nothing of an event that became no notification at all.

use std::fmt;

use super::SubscriptionState;

/// What a subscription was like when it missed an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miss {
    /// Its state, if that keeps back what its filter lets through; of one that gets it, at once or after the challenge of an endpoint that it
    /// moves to, `ACTIVE` or `DEGRADED`.
    pub state: SubscriptionState,
    /// Whether its filter did not let the event's type through.
    pub filtered: bool,
    /// Whether it was paused, by its reseller or by an operator. That is no reason: what a paused subscription gets waits.
    pub paused: bool,
}

impl Miss {
    /// Each reason, as programs read it. One alone would have been enough.
    pub fn reasons(&self) -> Vec<&'static str> {
        let state = match self.state {
            SubscriptionState::PendingVerification => Some("UNVERIFIED"),
            SubscriptionState::Deactivated => Some("DEACTIVATED"),
            SubscriptionState::Active | SubscriptionState::Degraded => None,
        };
        self.filtered
            .then_some("FILTER")
            .into_iter()
            .chain(state)
            .collect()
    }
}

/// The reasons in words, as a part of a sentence.
impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self
            .reasons()
            .into_iter()
            .map(|reason| match reason {
                "FILTER" => "its filter did not let the type through",
                "UNVERIFIED" => "its endpoint was not verified",
                _ => "it was deactivated",
            })
            .collect();
        f.write_str(&words.join(", and "))?;
        if self.paused {
            f.write_str(" (it was also paused, which alone misses nothing)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_named_and_a_pause_is_none() {
        let told = |state, filtered, paused| {
            let miss = Miss {
                state,
                filtered,
                paused,
            };
            (miss.reasons().join(","), miss.to_string())
        };
        use SubscriptionState as S;
        let filter = "its filter did not let the type through";
        assert_eq!(
            told(S::Active, true, false),
            ("FILTER".to_owned(), filter.to_owned())
        );
        assert_eq!(told(S::Degraded, true, false).0, "FILTER");
        assert_eq!(
            told(S::PendingVerification, false, false).1,
            "its endpoint was not verified"
        );
        assert_eq!(
            told(S::Deactivated, true, true),
            (
                "FILTER,DEACTIVATED".to_owned(),
                format!("{filter}, and it was deactivated (it was also paused, which alone misses nothing)")
            )
        );
    }
}
