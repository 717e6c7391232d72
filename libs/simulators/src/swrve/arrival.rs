//! One request from its arrival to its end, which is recorded however it ends.

use std::sync::Arc;

use crate::received::Outcome;
use crate::swrve::recorder::Ticket;
use crate::swrve::server::Simulator;

/// Records an abandoned request when it is dropped without an end.
#[derive(Debug)]
pub(crate) struct Arrival {
    simulator: Arc<Simulator>,
    pub(crate) ticket: Ticket,
    end: (Outcome, Option<u16>),
}

impl Arrival {
    /// Stamps the arrival.
    pub(crate) fn now(simulator: Arc<Simulator>) -> Self {
        let ticket = simulator.recorder().arrive();
        Self {
            simulator,
            ticket,
            end: (Outcome::Abandoned, None),
        }
    }

    pub(crate) fn answered(mut self, status: u16) {
        self.end = (Outcome::Answered, Some(status));
    }

    pub(crate) fn dropped(mut self) {
        self.end = (Outcome::Dropped, None);
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let (outcome, status) = self.end;
        self.simulator.recorder().end(self.ticket.number, outcome, status);
    }
}
