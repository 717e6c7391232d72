//! Who goes next: the waiting notifications of every subscription, and how much each may use.
//!
//! No limit is fixed. A subscription may use a share of what is free at the moment: alone it gets a lot, among
//! many that hang each gets little, and something always stays free for one that comes new. (Networks share the
//! memory of a switch that way; see Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet
//! switches", 1998.)
//!
//! It is deliberately free of I/O and time: messages in, turns out.

use std::collections::{BinaryHeap, HashMap, VecDeque};

use domain::notification::NotificationId;
use uuid::Uuid;

/// A subscription may use one part in so many of what is free.
const SHARE: usize = 8;

/// How much there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capacity {
    /// Attempts that may be under way.
    pub(crate) slots: usize,
    /// Of them, for one subscription.
    pub(crate) slots_each: usize,
    /// Notifications that may wait here.
    pub(crate) buffer: usize,
}

/// The scheduler. `M` is what comes with a notification: the right to settle its message.
pub(crate) struct FairScheduler<M> {
    capacity: Capacity,
    subscriptions: HashMap<Uuid, Subscription<M>>,
    /// Those with something waiting, in the order of their turns. Each is in it once.
    turns: VecDeque<Uuid>,
    /// Those that may have something in the database, in the order of their turns, and those of which that is no longer so. Each is in it
    /// once.
    backlogs: VecDeque<Uuid>,
    /// What is to go to the database, behind what waits there.
    behind: Vec<Turn<M>>,
    /// What is to go to the database because its subscription is sent nothing but probes.
    withheld: Vec<Turn<M>>,
    waiting: usize,
    in_flight: usize,
}

struct Subscription<M> {
    waiting: VecDeque<(NotificationId, M)>,
    in_flight: usize,
    in_turns: bool,
    /// Whether more of it may wait in the database.
    backlog: bool,
    /// Whether some of it has been put aside since the engine began to look there last.
    put_aside: bool,
    in_backlogs: bool,
    /// Whether the engine is fetching that.
    fetching: bool,
    /// Whether it is sent nothing but probes.
    withheld: bool,
}

impl<M> Default for Subscription<M> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            in_flight: 0,
            in_turns: false,
            backlog: false,
            put_aside: false,
            in_backlogs: false,
            fetching: false,
            withheld: false,
        }
    }
}

/// A notification that leaves the scheduler: its turn has come, and its slot is taken until [`FairScheduler::release`]; or it goes to the
/// database.
pub(crate) struct Turn<M> {
    pub(crate) subscription: Uuid,
    pub(crate) id: NotificationId,
    pub(crate) message: M,
}

/// Slots of a subscription that are kept for what waits in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fetch {
    pub(crate) subscription: Uuid,
    pub(crate) slots: usize,
}

impl<M> FairScheduler<M> {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
            subscriptions: HashMap::new(),
            turns: VecDeque::new(),
            backlogs: VecDeque::new(),
            behind: Vec::new(),
            withheld: Vec::new(),
            waiting: 0,
            in_flight: 0,
        }
    }

    /// Takes a notification in.
    pub(crate) fn arrive(&mut self, subscription: Uuid, id: NotificationId, message: M) {
        let entry = self.subscriptions.entry(subscription).or_default();
        let turn = Turn {
            subscription,
            id,
            message,
        };
        if entry.withheld {
            self.withheld.push(turn);
            return;
        }
        if entry.backlog {
            // Else the newest would always find room, and what waits in the database never would.
            self.behind.push(turn);
            return;
        }
        entry.waiting.push_back((turn.id, turn.message));
        self.waiting += 1;
        if !entry.in_turns {
            entry.in_turns = true;
            self.turns.push_back(subscription);
        }
    }

    /// What goes to the database: what came while more of its subscription waits there, and what there is no room for,
    /// taken from the subscription with the most waiting, the newest half at once.
    pub(crate) fn overflow(&mut self) -> Vec<Turn<M>> {
        let mut over = std::mem::take(&mut self.behind);
        if self.waiting <= self.capacity.buffer {
            return over;
        }
        // All are looked at once, and not for each that is taken from: where every one of many has little, those are many, too.
        let lengths = self.subscriptions.iter();
        let mut by_length: BinaryHeap<(usize, Uuid)> = lengths
            .map(|(subscription, entry)| (entry.waiting.len(), *subscription))
            .collect();
        while self.waiting > self.capacity.buffer {
            let Some((_, subscription)) = by_length.pop() else {
                break;
            };
            let Some(entry) = self.subscriptions.get_mut(&subscription) else {
                continue;
            };
            let kept = entry.waiting.len() / 2;
            by_length.push((kept, subscription));
            // Identifiers begin with a time; what comes from the database again is older than what has just arrived.
            entry
                .waiting
                .make_contiguous()
                .sort_unstable_by_key(|(id, _)| *id);
            self.waiting -= entry.waiting.len() - kept;
            over.extend(of(subscription, entry.waiting.drain(kept..)));
            self.note_backlog(subscription);
        }
        over
    }

    /// Who may start now, in turns, at most `limit`.
    pub(crate) fn take(&mut self, limit: usize) -> Vec<Turn<M>> {
        let mut taken = Vec::new();
        // Those passed over because they use all that they may keep their order. When no slot is free they are not even asked.
        let mut passed = 0;
        while taken.len() < limit && passed < self.turns.len() && self.in_flight < self.capacity.slots {
            let Some(subscription) = self.turns.pop_front() else {
                break;
            };
            let room = self.room(subscription);
            let Some(entry) = self.subscriptions.get_mut(&subscription) else {
                continue;
            };
            if entry.waiting.is_empty() {
                entry.in_turns = false;
                self.forget_if_idle(subscription);
                continue;
            }
            self.turns.push_back(subscription);
            if room == 0 {
                passed += 1;
                continue;
            }
            passed = 0;
            let Some((id, message)) = entry.waiting.pop_front() else {
                continue;
            };
            entry.in_flight += 1;
            self.in_flight += 1;
            self.waiting -= 1;
            taken.push(Turn {
                subscription,
                id,
                message,
            });
        }
        taken
    }

    /// Notes that more of a subscription may wait in the database.
    pub(crate) fn note_backlog(&mut self, subscription: Uuid) {
        let entry = self.subscriptions.entry(subscription).or_default();
        if entry.withheld {
            return;
        }
        entry.backlog = true;
        self.list_backlog(subscription);
    }

    /// Notes that something of a subscription was put into the database just now. A fetch that is under way, or has ended meanwhile, may have
    /// looked before that, and promoters leave it to the engine. What comes for the subscription does not go behind it for that alone: that
    /// would be put aside as well, and so on for as long as something comes.
    pub(crate) fn note_put_aside(&mut self, subscription: Uuid) {
        let entry = self.subscriptions.entry(subscription).or_default();
        if entry.withheld {
            return;
        }
        entry.put_aside = true;
        self.list_backlog(subscription);
    }

    fn list_backlog(&mut self, subscription: Uuid) {
        if let Some(entry) = self.subscriptions.get_mut(&subscription)
            && !entry.in_backlogs
        {
            entry.in_backlogs = true;
            self.backlogs.push_back(subscription);
        }
    }

    /// Subscriptions that have slots for what waits for them in the database, in the order of their turns: `limit` slots at most, of
    /// which each has its part. They are taken until [`FairScheduler::fetched`].
    pub(crate) fn fetches(&mut self, limit: usize) -> Vec<Fetch> {
        let next = self.next_backlogs(limit);
        let each = limit / next.len().max(1);
        let mut fetches = Vec::with_capacity(next.len());
        for subscription in next {
            let slots = self.room(subscription).min(each);
            if let Some(entry) = self.subscriptions.get_mut(&subscription)
                && slots > 0
            {
                entry.fetching = true;
                entry.put_aside = false;
                entry.in_flight += slots;
                self.in_flight += slots;
                fetches.push(Fetch { subscription, slots });
            }
        }
        fetches
    }

    /// The next in turn of those with a backlog that may start something now, at most `limit`; their turns are over with it.
    fn next_backlogs(&mut self, limit: usize) -> Vec<Uuid> {
        let free = self.capacity.slots.saturating_sub(self.in_flight);
        // Half of them, so that the others can be fetched while these are under way.
        let most = limit.min(self.backlogs.len().div_ceil(2)).min(free);
        let mut next = Vec::with_capacity(most);
        // Those passed over have something under way or waiting here, which bounds how many they are. They take no turn and no part of the
        // slots from others: one whose endpoint hangs would hold them up until something else happens.
        for _ in 0..self.backlogs.len() {
            if next.len() >= most {
                break;
            }
            let Some(subscription) = self.backlogs.pop_front() else {
                break;
            };
            let room = self.room(subscription);
            let Some(entry) = self.subscriptions.get_mut(&subscription) else {
                continue;
            };
            // One that is being fetched may turn out to have more.
            if !entry.backlog && !entry.put_aside && !entry.fetching {
                entry.in_backlogs = false;
                self.forget_if_idle(subscription);
                continue;
            }
            self.backlogs.push_back(subscription);
            if room > 0 && !entry.fetching && entry.waiting.is_empty() {
                next.push(subscription);
            }
        }
        next
    }

    /// Ends a fetch that found `used` notifications, which keep their slots; `more` tells whether there may be more.
    pub(crate) fn fetched(&mut self, fetch: Fetch, used: usize, more: bool) {
        if let Some(entry) = self.subscriptions.get_mut(&fetch.subscription) {
            entry.fetching = false;
            // It stays in `backlogs` until its turn: looking for it there takes as long as there are subscriptions.
            entry.backlog = more && !entry.withheld;
        }
        self.release(fetch.subscription, fetch.slots.saturating_sub(used));
    }

    /// From now on nothing of a subscription starts but probes; what waits here goes to the database.
    pub(crate) fn withhold(&mut self, subscription: Uuid) {
        let entry = self.subscriptions.entry(subscription).or_default();
        entry.withheld = true;
        entry.backlog = false;
        entry.put_aside = false;
        self.waiting -= entry.waiting.len();
        self.withheld.extend(of(subscription, entry.waiting.drain(..)));
    }

    /// What goes to the database because its subscription is sent nothing but probes.
    pub(crate) fn take_withheld(&mut self) -> Vec<Turn<M>> {
        std::mem::take(&mut self.withheld)
    }

    /// The subscription is sent to as always, first what waits for it in the database.
    pub(crate) fn resume(&mut self, subscription: Uuid) {
        if let Some(entry) = self.subscriptions.get_mut(&subscription) {
            entry.withheld = false;
        }
        self.note_backlog(subscription);
    }

    /// Whether nothing of a subscription is under way.
    pub(crate) fn is_idle(&self, subscription: Uuid) -> bool {
        let entry = self.subscriptions.get(&subscription);
        entry.is_none_or(|entry| entry.in_flight == 0)
    }

    /// A slot for a probe, which is taken until [`FairScheduler::probed`]. It is there even when all are taken: a probe is one in a second.
    pub(crate) fn probe(&mut self, subscription: Uuid) -> Fetch {
        let entry = self.subscriptions.entry(subscription).or_default();
        entry.in_flight += 1;
        self.in_flight += 1;
        Fetch {
            subscription,
            slots: 1,
        }
    }

    /// A probe was claimed, or there was nothing to claim. What is known of the backlog may be newer than that.
    pub(crate) fn probed(&mut self, probe: Fetch, used: usize) {
        self.release(probe.subscription, probe.slots.saturating_sub(used));
    }

    /// Gives slots of a subscription back.
    pub(crate) fn release(&mut self, subscription: Uuid, slots: usize) {
        if let Some(entry) = self.subscriptions.get_mut(&subscription) {
            let slots = slots.min(entry.in_flight);
            entry.in_flight -= slots;
            self.in_flight -= slots;
        }
        self.forget_if_idle(subscription);
    }

    /// Attempts under way, and slots kept for them.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Everything that waits, for giving it back.
    pub(crate) fn clear(&mut self) -> Vec<M> {
        self.waiting = 0;
        self.turns.clear();
        let waiting = self.subscriptions.values_mut().flat_map(|entry| {
            entry.in_turns = false;
            entry.waiting.drain(..).map(|(_, message)| message)
        });
        self.behind
            .drain(..)
            .chain(self.withheld.drain(..))
            .map(|turn| turn.message)
            .chain(waiting)
            .collect()
    }

    /// How many more attempts a subscription may start.
    fn room(&self, subscription: Uuid) -> usize {
        let free = self.capacity.slots.saturating_sub(self.in_flight);
        let used = self
            .subscriptions
            .get(&subscription)
            .map_or(0, |entry| entry.in_flight);
        let allowed = (free / SHARE).max(1).min(self.capacity.slots_each);
        allowed.saturating_sub(used).min(free)
    }

    fn forget_if_idle(&mut self, subscription: Uuid) {
        let idle = self.subscriptions.get(&subscription).is_some_and(|entry| {
            entry.waiting.is_empty()
                && entry.in_flight == 0
                && !entry.in_turns
                && !entry.backlog
                && !entry.in_backlogs
                && !entry.fetching
                && !entry.withheld
        });
        if idle {
            self.subscriptions.remove(&subscription);
        }
    }
}

/// These of one subscription, as they leave.
fn of<M>(
    subscription: Uuid,
    waiting: impl Iterator<Item = (NotificationId, M)>,
) -> impl Iterator<Item = Turn<M>> {
    waiting.map(move |(id, message)| Turn {
        subscription,
        id,
        message,
    })
}

#[cfg(test)]
mod tests;
