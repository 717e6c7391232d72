//! The gate between storing and publishing: open, and what is stored goes to the queue at once; closed, and it is stored
//! as `PENDING`, without paying for a publish that would be refused.
//!
//! It deliberately observes nothing itself: who publishes closes it, and `watch` opens it with what it has seen.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why the gate is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// There is no connection to the broker, or the broker takes no messages.
    BrokerAway,
    /// The broker refused a message because the queue is full.
    QueueFull,
    /// The broker did not confirm a message in time.
    Unconfirmed,
    /// The broker had no queue for a message.
    Unroutable,
    /// More is stored than is published.
    PublisherBehind,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BrokerAway => "the broker is away",
            Self::QueueFull => "the queue is full",
            Self::Unconfirmed => "a message was not confirmed",
            Self::Unroutable => "a message found no queue",
            Self::PublisherBehind => "publishing falls behind",
        })
    }
}

/// What has to be known before the gate may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Observation {
    /// Messages in the queue.
    pub(crate) queued: u32,
    /// Length of the queue.
    pub(crate) capacity: u32,
    /// Whether one has waited as `PENDING` for longer than it takes to be promoted. New ones that went past it to the queue
    /// could overtake it for ever.
    pub(crate) waiting: bool,
}

impl Observation {
    /// Room for new pushes means a queue that is less than 80 % full: opening at the first free place would close the
    /// gate again with the next batch.
    fn allows_opening(&self) -> bool {
        !self.waiting && u64::from(self.queued) * 5 < u64::from(self.capacity) * 4
    }
}

/// Proves which state of the gate an observation was made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GateVersion(u64);

const OPEN: u64 = 1;

/// The gate. It starts closed, since there is no connection yet.
///
/// The state is a count of closings with the lowest bit telling whether the gate is open. The count is what keeps an
/// observation that was made before a closing from undoing it.
#[derive(Debug)]
pub(crate) struct Gate {
    /// What goes through it, for the log.
    what: &'static str,
    state: AtomicU64,
}

impl Gate {
    /// A closed gate for `what`.
    pub(crate) fn of(what: &'static str) -> Self {
        Self {
            what,
            state: AtomicU64::new(0),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) & OPEN != 0
    }

    /// Closes the gate, or tells one who is about to open it that something has happened since.
    pub(crate) fn close(&self, reason: Reason) {
        let next = |state: u64| Some((state & !OPEN).wrapping_add(2));
        let before = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        if before.is_ok_and(|state| state & OPEN != 0) {
            tracing::info!(%reason, "{} are stored as PENDING from now on", self.what);
        }
    }

    /// The state to present to [`Gate::open`], taken before anything is observed.
    pub(crate) fn version(&self) -> GateVersion {
        GateVersion(self.state.load(Ordering::Acquire) & !OPEN)
    }

    /// Opens the gate if `observation` allows it and nothing has closed it since `version`; tells whether it is open.
    pub(crate) fn open(&self, version: GateVersion, observation: &Observation) -> bool {
        if !observation.allows_opening() {
            return self.is_open();
        }
        let (from, to) = (version.0, version.0 | OPEN);
        if self
            .state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            tracing::info!("{} go straight to the queue from now on", self.what);
        }
        self.is_open()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Observation = Observation {
        queued: 79,
        capacity: 100,
        waiting: false,
    };

    #[test]
    fn it_starts_closed_and_opens_when_there_is_room_and_nothing_waits() {
        let gate = Gate::of("pushes");
        assert!(!gate.is_open());
        assert!(gate.open(gate.version(), &ROOM));
        assert!(gate.is_open());
    }

    #[test]
    fn a_queue_that_is_80_percent_full_keeps_it_closed() {
        let gate = Gate::of("pushes");
        assert!(!gate.open(gate.version(), &Observation { queued: 80, ..ROOM }));
        assert!(gate.open(gate.version(), &Observation { queued: 79, ..ROOM }));
    }

    #[test]
    fn waiting_pushes_keep_it_closed_even_before_an_empty_queue() {
        let gate = Gate::of("pushes");
        let waiting = Observation {
            queued: 0,
            waiting: true,
            ..ROOM
        };
        assert!(!gate.open(gate.version(), &waiting));
    }

    #[test]
    fn the_largest_capacity_does_not_overflow() {
        let full = Observation {
            queued: u32::MAX,
            capacity: u32::MAX,
            waiting: false,
        };
        assert!(!full.allows_opening());
    }

    #[test]
    fn every_reason_closes_it() {
        for reason in [
            Reason::BrokerAway,
            Reason::QueueFull,
            Reason::Unconfirmed,
            Reason::Unroutable,
            Reason::PublisherBehind,
        ] {
            let gate = Gate::of("pushes");
            gate.open(gate.version(), &ROOM);
            gate.close(reason);
            assert!(!gate.is_open(), "{reason}");
        }
    }

    #[test]
    fn an_observation_from_before_a_closing_does_not_open_it() {
        let gate = Gate::of("pushes");
        let before = gate.version();
        gate.close(Reason::QueueFull);
        assert!(!gate.open(before, &ROOM));
        assert!(gate.open(gate.version(), &ROOM));
    }

    #[test]
    fn an_old_observation_of_an_open_gate_does_not_reopen_it() {
        let gate = Gate::of("pushes");
        gate.open(gate.version(), &ROOM);
        let while_open = gate.version();
        gate.close(Reason::QueueFull);
        assert!(!gate.open(while_open, &ROOM));
    }
}
