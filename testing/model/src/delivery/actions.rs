//! What can happen next, and what each of it stands for.

use domain::push::PushState;

use super::lane::Outcome;
use super::state::{PublishStep, Receipt, Release, State, Step, Subscription, Term};
use super::statements::Judgement;
use super::{Broken, Delivery};
use crate::graph::Class;

/// How a publish ends, as the publisher sees it (`libs/broker/src/publisher.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Published {
    /// The broker has it and says so, or says that its queue is full.
    Confirmed,
    /// There is no broker, or it is in trouble. A mishap; that a full queue refuses is none.
    Refused,
    /// The broker has it, and its confirm is lost or late. A mishap.
    Unconfirmed,
    /// The publisher dies with the message unsent. A mishap.
    Died,
}

/// One commit, one frame or one request. `worker` is a place in [`State::workers`], `item` one in its items, `message` one in
/// [`State::ready`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are places, named alike in all of them")]
pub enum Action {
    /// `leased_until` passes, by whatever clock the database has.
    Lapse { row: usize },
    /// `services/retry-worker/src/jobs/rescue.rs`: one row of a pass.
    Rescue { row: usize },
    /// `services/retry-worker/src/jobs/promotion.rs` and `send_notifications.rs`: the statement.
    Promote { row: usize },
    /// The same for all rows at once, which then share a message.
    PromoteTogether,
    /// The publish after it, and that of `services/ingest-api/src/lane/outbox.rs`.
    Publish { message: usize, published: Published },
    /// Both mark what was not confirmed.
    MarkBack { message: usize },
    /// The process that was to mark it dies, or the database is away for too long. A mishap.
    ForgetToMark { message: usize },
    /// `libs/leadership/src/candidate.rs`: a worker takes the lease, whether it is free or held.
    TakeLead { worker: usize },
    /// A leader learns that it is none any more: by its renewal, its deadline, or a claim that was refused.
    StepDown { worker: usize },
    /// The broker hands a message to a process that consumes.
    Deliver { worker: usize, message: usize },
    /// The same for a shared message and a process of an earlier version, which reads its first row and settles it for all. A mishap.
    DeliverToEarlier { worker: usize, message: usize },
    /// The claiming statement, and its answer.
    Claim {
        worker: usize,
        item: usize,
        judgement: Judgement,
    },
    /// The claiming statement commits, and its answer is lost: it is made once more. A mishap.
    ClaimUnanswered { worker: usize, item: usize },
    /// `fetch` in `libs/engine/src/webhook/claimer.rs`: a claim without a message.
    Fetch { worker: usize, row: usize },
    /// `spill` in `libs/engine/src/webhook/run_loop.rs`: no room for more of its subscription.
    Spill { worker: usize, item: usize },
    /// `Loop::send` in `libs/engine/src/push/sender.rs`, `make` in `libs/engine/src/webhook/attempt.rs`: the request, and what comes of it.
    /// No worker asks here whether it is too late: a process can be stopped between the question and the request.
    Send {
        worker: usize,
        item: usize,
        outcome: Outcome,
    },
    /// It is given back unsent: the sender stops, or it is too late. Until that is done it is a claim like any other.
    GiveBack {
        worker: usize,
        item: usize,
        release: Release,
    },
    /// `None` of `make`: too late for an attempt; the lease finds it. A mishap.
    TooLate { worker: usize, item: usize },
    /// `libs/engine/src/push/completer.rs`, `libs/engine/src/webhook/completer.rs`: the recording statement, and its answer.
    Record { worker: usize, item: usize },
    /// It commits, and its answer is lost: it is made once more. A mishap.
    RecordUnanswered { worker: usize, item: usize },
    /// The database refuses it for good: the lease finds the row. A mishap.
    RecordRefused { worker: usize, item: usize },
    /// `libs/engine/src/webhook/run_loop.rs`: its process stops before it has claimed it, and a row of a shared message asks for a requeue.
    /// A mishap.
    PutBack { worker: usize, item: usize },
    /// `buffer` there: this row of a shared message is not one of the lane. A mishap.
    Reject { worker: usize, item: usize },
    /// The task that holds a part of a message ends without settling it. A mishap.
    Drop { worker: usize, item: usize },
    /// The ack or the requeue. Without a receipt that the connection still takes, nothing.
    Settle { worker: usize, item: usize },
    /// The broker closes a channel on which a message has not been settled for too long: it is ready again.
    ChannelEnds { worker: usize },
    /// A process dies. What it held is ready again. A mishap.
    Crash { worker: usize },
    /// A connection to the broker breaks: what it held is ready again, and its receipts are void. A mishap.
    Disconnect { worker: usize },
    /// The broker loses everything, and every connection. A mishap.
    Wipe,
    /// A message is ready twice. A mishap.
    Duplicate { message: usize },
    /// A message has come back too often: the broker gives it up. A mishap.
    GiveUpMessage { message: usize },
    /// `services/retry-worker/src/archiver.rs`: the statement, then the ack, unless it dies in between (a mishap).
    Archive { message: usize, acked: bool },
    /// `libs/store/src/push/cancel.rs`. A wish.
    Cancel { row: usize },
    /// `libs/store/src/resolution/single.rs`. A wish.
    Replay { row: usize },
    /// `libs/store/src/webhook/sending_again.rs`. A wish.
    Resend { row: usize },
    /// `requeue_everything` in `libs/store/src/restore.rs`. A wish.
    Requeue { row: usize },
    /// A subscription is paused, resumed, deactivated or activated. A wish.
    Subscription { to: Subscription },
    /// `libs/store/src/webhook/inactive.rs`: what waits for a subscription that gets nothing ends.
    EndInactive { row: usize },
    /// The same for what has waited for too long. A mishap.
    EndExpired { row: usize },
}

impl Action {
    /// Whether it uses up a mishap.
    pub fn is_mishap(&self) -> bool {
        match self {
            Self::Publish { published, .. } => *published != Published::Confirmed,
            Self::Send { outcome, .. } => *outcome == Outcome::AcceptedUnheard,
            Self::Archive { acked, .. } => !acked,
            Self::Claim { judgement, .. } => *judgement != Judgement::Go,
            Self::ForgetToMark { .. }
            | Self::ClaimUnanswered { .. }
            | Self::Spill { .. }
            | Self::GiveBack { .. }
            | Self::TooLate { .. }
            | Self::RecordUnanswered { .. }
            | Self::RecordRefused { .. }
            | Self::DeliverToEarlier { .. }
            | Self::PutBack { .. }
            | Self::Reject { .. }
            | Self::Drop { .. }
            | Self::Crash { .. }
            | Self::Disconnect { .. }
            | Self::Wipe
            | Self::Duplicate { .. }
            | Self::GiveUpMessage { .. }
            | Self::EndExpired { .. } => true,
            _ => false,
        }
    }

    /// Whether it is a mishap of messages after which each is still somewhere.
    pub(super) fn keeps_messages(&self) -> bool {
        match self {
            Self::Publish { published, .. } => {
                matches!(published, Published::Refused | Published::Unconfirmed)
            }
            Self::Archive { acked, .. } => !acked,
            Self::PutBack { .. }
            | Self::Reject { .. }
            | Self::Drop { .. }
            | Self::Crash { .. }
            | Self::Disconnect { .. }
            | Self::Duplicate { .. }
            | Self::GiveUpMessage { .. } => true,
            _ => false,
        }
    }

    /// Whether it is a mishap by which a row that is queued is left without a message.
    pub(super) fn loses_messages(&self) -> bool {
        matches!(
            self,
            Self::Publish {
                published: Published::Died,
                ..
            } | Self::ForgetToMark { .. }
                | Self::DeliverToEarlier { .. }
                | Self::Wipe
        )
    }

    /// Whether it uses up a wish.
    pub fn is_wish(&self) -> bool {
        matches!(
            self,
            Self::Cancel { .. }
                | Self::Replay { .. }
                | Self::Resend { .. }
                | Self::Requeue { .. }
                | Self::Subscription { .. }
        )
    }

    /// What is bound to happen when it stays possible: everything that is neither a mishap nor a wish, for each row and each message by
    /// itself. Which process does it does not matter.
    pub(super) fn class(&self, state: &State) -> Option<Class> {
        if self.is_mishap() || self.is_wish() {
            return None;
        }
        let about = |worker: usize, item: usize| state.workers[worker].items[item].row;
        let (kind, place) = match *self {
            Self::Lapse { row } => (0, row),
            Self::Rescue { row } => (1, row),
            Self::Promote { row } => (2, row),
            Self::Publish { message, .. } => (3, message),
            Self::MarkBack { message } => (4, message),
            Self::TakeLead { .. } => (5, 0),
            Self::StepDown { .. } => (6, 0),
            Self::Deliver { message, .. } => (7, message),
            Self::Claim { worker, item, .. } => (8, about(worker, item)),
            Self::Send { worker, item, .. } => (9, about(worker, item)),
            Self::Record { worker, item } => (10, about(worker, item)),
            Self::Settle { worker, item } => (11, about(worker, item)),
            Self::Archive { message, .. } => (12, message),
            Self::EndInactive { row } => (13, row),
            Self::ChannelEnds { .. } => (14, 0),
            // A chance, not a duty: what it finds would come by itself.
            _ => return None,
        };
        Some(Class(kind * 16 + u32::try_from(place).unwrap_or(u32::MAX)))
    }
}

impl Delivery {
    /// Everything that may happen next.
    pub(super) fn enabled(&self, state: &State, actions: &mut Vec<Action>) {
        let mut all = Vec::with_capacity(32);
        for row in 0..state.rows.len() {
            self.of_row(state, row, &mut all);
            self.of_message(state, row, &mut all);
            self.of_people(state, row, &mut all);
        }
        self.of_all_rows(state, &mut all);
        for publishing in &state.publishing {
            Self::of_publisher(*publishing, &mut all);
        }
        for worker in 0..state.workers.len() {
            self.of_worker(state, worker, &mut all);
            for item in 0..state.workers[worker].items.len() {
                self.of_item(state, worker, item, &mut all);
            }
        }
        all.push(Action::Wipe);
        actions.extend(all.into_iter().filter(|action| self.is_left(state, action)));
    }

    fn is_left(&self, state: &State, action: &Action) -> bool {
        let takes_lead_from_another = matches!(action, Action::TakeLead { .. })
            && state.workers.iter().any(|worker| worker.term == Term::Current);
        if action.is_wish() {
            return state.wishes > 0;
        }
        if action.is_mishap() || takes_lead_from_another {
            return state.mishaps > 0 && self.mishaps.allow(action);
        }
        state.mishaps > 0 || !self.is_early(state, action)
    }

    fn of_row(&self, state: &State, row: usize, all: &mut Vec<Action>) {
        let found = &state.rows[row];
        if matches!(found.state, PushState::Queued | PushState::Sending) {
            if !found.lapsed {
                all.push(Action::Lapse { row });
            }
            let lost = found.lapsed || self.is(Broken::RescueWithoutLeaseCheck);
            if lost && !self.is(Broken::NoRescue) {
                all.push(Action::Rescue { row });
            }
        }
        if self.is_promotable(state, row) && state.publishing.len() < self.bounds.publishers {
            all.push(Action::Promote { row });
        }
    }

    pub(super) fn of_message(&self, state: &State, message: usize, all: &mut Vec<Action>) {
        if state.ready[message] > 0 {
            if self.sharing || state.ready[message] < self.bounds.capacity {
                all.push(Action::Duplicate { message });
            }
            if state.dead[message] == 0 {
                all.push(Action::GiveUpMessage { message });
            }
        }
        if state.dead[message] > 0 {
            all.extend([true, false].map(|acked| Action::Archive { message, acked }));
        }
    }

    fn of_publisher(publishing: super::Publishing, all: &mut Vec<Action>) {
        let message = publishing.message;
        match publishing.step {
            PublishStep::ToPublish => all.extend(
                [
                    Published::Confirmed,
                    Published::Refused,
                    Published::Unconfirmed,
                    Published::Died,
                ]
                .map(|published| Action::Publish { message, published }),
            ),
            PublishStep::ToMark => {
                all.extend([Action::MarkBack { message }, Action::ForgetToMark { message }]);
            }
        }
    }

    fn of_worker(&self, state: &State, worker: usize, all: &mut Vec<Action>) {
        let found = &state.workers[worker];
        // One of several that are alike stands for all of them.
        if worker > 0 && state.workers[worker - 1] == *found {
            return;
        }
        match found.term {
            Term::None => all.push(Action::TakeLead { worker }),
            Term::Stale => all.push(Action::StepDown { worker }),
            Term::Current => {}
        }
        if found.term != Term::None {
            all.push(Action::Crash { worker });
            let has_room = found.items.len() < self.bounds.prefetch;
            for row in 0..state.rows.len() {
                if has_room && state.ready[row] > 0 {
                    all.push(Action::Deliver { worker, message: row });
                }
                let waits = matches!(state.rows[row].state, PushState::Pending | PushState::Retry);
                if has_room && waits && !self.lane.is_push() && !self.sharing {
                    all.push(Action::Fetch { worker, row });
                }
            }
            self.of_shared_message(state, worker, all);
        } else if !found.items.is_empty() {
            all.push(Action::Crash { worker });
        }
        if found.items.iter().any(|item| item.receipt != Receipt::Void) {
            all.push(Action::Disconnect { worker });
        }
    }

    fn of_item(&self, state: &State, worker: usize, item: usize, all: &mut Vec<Action>) {
        let items = &state.workers[worker].items;
        if item > 0 && items[item - 1] == items[item] {
            return;
        }
        let found = items[item];
        Self::of_share(worker, item, found, all);
        match found.step {
            Step::Delivered => {
                let judgement = Judgement::Go;
                all.push(Action::Claim {
                    worker,
                    item,
                    judgement,
                });
                all.push(Action::ClaimUnanswered { worker, item });
                if !self.lane.is_push() {
                    all.push(Action::Spill { worker, item });
                    for judgement in [Judgement::Later, Judgement::NotDue] {
                        all.push(Action::Claim {
                            worker,
                            item,
                            judgement,
                        });
                    }
                }
            }
            Step::Claimed(_) => {
                all.extend(self.outcomes().iter().map(|outcome| Action::Send {
                    worker,
                    item,
                    outcome: *outcome,
                }));
                if self.lane.is_push() {
                    for release in [Release::HandBack, Release::Defer] {
                        all.push(Action::GiveBack {
                            worker,
                            item,
                            release,
                        });
                    }
                } else {
                    all.push(Action::TooLate { worker, item });
                }
            }
            Step::Answered(..) | Step::Released(..) => {
                all.push(Action::Record { worker, item });
                all.push(Action::RecordUnanswered { worker, item });
                all.push(Action::RecordRefused { worker, item });
            }
            Step::Settling(_) => all.push(Action::Settle { worker, item }),
            Step::Kept => all.push(Action::ChannelEnds { worker }),
        }
    }

    fn of_people(&self, state: &State, row: usize, all: &mut Vec<Action>) {
        let found = &state.rows[row];
        let failed = matches!(found.state, PushState::Failed | PushState::GivenUp);
        let ended = state.subscription == Subscription::Ended;
        if !found.has_ended() && found.state != PushState::Sending {
            all.push(Action::Cancel { row });
        }
        if found.dead_letters > 0 && failed && !found.silent && (self.lane.is_push() || !ended) {
            all.push(Action::Replay { row });
        }
        if found.state == PushState::Queued {
            all.push(Action::Requeue { row });
        }
        if self.lane.is_push() {
            return;
        }
        if found.has_ended() && !ended {
            all.push(Action::Resend { row });
        }
        let waits = matches!(
            found.state,
            PushState::Pending | PushState::Scheduled | PushState::Retry
        );
        if waits && ended {
            all.push(Action::EndInactive { row });
        }
        if waits {
            all.push(Action::EndExpired { row });
        }
        if row == 0 {
            for to in [Subscription::Open, Subscription::Held, Subscription::Ended] {
                if to != state.subscription {
                    all.push(Action::Subscription { to });
                }
            }
        }
    }
}
