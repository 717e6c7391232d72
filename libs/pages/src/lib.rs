//! What the pages of Postrider's services share: what stands around a page, times and numbers as people read them, style sheet and scripts,
//! lists as files, forms and cookies, what a browser may do with an answer, and problems as pages.
//!
//! A page gets documents, and renders them. What it deliberately does not know: the store, who may visit and what a service's pages are.

mod assets;
mod compression;
pub mod export;
mod filtered;
mod folded;
mod form;
mod frame;
mod guard;
mod leaving_out;
pub mod markup;
mod preferences;
mod violations;

pub use assets::{Asset, Assets};
pub use folded::folded;
pub use form::{Fields, TYPED_ABOVE};
pub use frame::{
    FLASH, Flash, Frame, Moment, Number, Page, TICK, append_cookie, cookie, done, done_if, local, moved,
    name_of, not_done, see_other, segment,
};
pub use guard::{
    Details, FieldDetails, address_of, details_of, is_followed_here, is_of_this_origin, is_safe, tagged,
    takes_pages, with_headers, without_empty,
};
pub use leaving_out::{Filter, LeavingOut, Without};
pub use markup::{Markup, escape, visible};
pub use preferences::{PREFERENCES, Preferences, PreferencesForm, prefer};
pub use violations::Violations;
