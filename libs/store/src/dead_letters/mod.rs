//! Dead letters: archiving what the broker gave up, and finding them, one by one, in lists and in groups.
//!
//! Those of pushes and notifications that ended badly are written where these end; what is done about a dead letter is in
//! `resolution`.

mod archive;
mod by_reseller;
mod filter;
mod groups;
mod growth;
pub(crate) mod kinds;
mod list;
mod notes;
mod show;
mod streams;
mod view;

pub use archive::{BrokerDeadLetter, DeadLetterLane};
pub use by_reseller::{DeadLettersByReseller, ResellerDeadLetters};
pub use filter::{DeadLetterFilter, DeadLetterReason, DeadLetterState};
pub use groups::{DeadLetterGroup, DeadLetterGroups};
pub use growth::{DeadLetterHours, DeadLetterTimeline, DeadLettersBy, Hours};
pub use list::{DeadLetterCursor, DeadLetterOrder};
pub use notes::{DeadLetterGroupKey, DeadLetterGroupNote};
pub use show::{DeadLetterHistory, DeadLetterSubject};
pub use view::DeadLetterView;
