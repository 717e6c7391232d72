//! What the rows of one message want of it. It is settled once, when the last of them has said so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// What is to become of a message; of several, the last one here counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Wish {
    /// The work is done.
    Ack,
    /// The message is of no use.
    Reject,
    /// The work is not done.
    Requeue,
    /// Nothing is said of a row: the message stays here until the consumer ends.
    Keep,
}

impl Wish {
    const ALL: [Self; 4] = [Self::Ack, Self::Reject, Self::Requeue, Self::Keep];
}

#[derive(Debug)]
struct Rows {
    left: AtomicUsize,
    wish: AtomicU8,
}

/// One row's say in what becomes of its message. Dropping it means [`Wish::Keep`].
#[derive(Debug)]
pub(crate) struct Part {
    /// `None` once it has been used.
    rows: Option<Arc<Rows>>,
}

impl Part {
    /// The parts of a message about so many rows.
    pub(crate) fn of(rows: usize) -> impl Iterator<Item = Self> {
        let shared = Arc::new(Rows {
            left: AtomicUsize::new(rows),
            wish: AtomicU8::new(Wish::Ack as u8),
        });
        std::iter::repeat_n(shared, rows).map(|rows| Self { rows: Some(rows) })
    }

    /// What is to become of the message, if all others have been used; `None` while there are others.
    pub(crate) fn used(mut self, wish: Wish) -> Option<Wish> {
        self.say(wish)
    }

    fn say(&mut self, wish: Wish) -> Option<Wish> {
        let rows = self.rows.take()?;
        rows.wish.fetch_max(wish as u8, Ordering::AcqRel);
        let last = rows.left.fetch_sub(1, Ordering::AcqRel) == 1;
        let said = usize::from(rows.wish.load(Ordering::Acquire));
        last.then(|| Wish::ALL[said])
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.say(Wish::Keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_settles_for_all() {
        for (wishes, settled) in [
            (vec![Wish::Ack], Wish::Ack),
            (vec![Wish::Ack, Wish::Ack, Wish::Ack], Wish::Ack),
            (vec![Wish::Requeue, Wish::Ack], Wish::Requeue),
            (vec![Wish::Ack, Wish::Requeue, Wish::Reject], Wish::Requeue),
            (vec![Wish::Reject, Wish::Ack], Wish::Reject),
        ] {
            let mut said: Vec<_> = Part::of(wishes.len())
                .zip(&wishes)
                .map(|(part, wish)| part.used(*wish))
                .collect();
            assert_eq!(said.pop(), Some(Some(settled)), "{wishes:?}");
            assert!(said.iter().all(Option::is_none), "{wishes:?}");
        }
    }

    #[test]
    fn a_row_of_which_nothing_is_said_keeps_the_message() {
        let mut parts = Part::of(2);
        drop(parts.next());
        let last = parts.next().expect("two");
        assert_eq!(last.used(Wish::Ack), Some(Wish::Keep));
    }
}
