//! E-mails to resellers: what they say, and how they are handed to a mail server.
//!
//! What it deliberately does not do: decide when a mail is due, store anything, or try anything twice. The caller
//! keeps the mail until the server has taken it.

mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod message;
mod page;
mod payload;
mod server;
mod session;
mod templates;

pub use error::{SendError, SettingsError, Unreadable};
pub use message::{Envelope, StoredMail};
pub use page::Rendered;
pub use server::{MailServer, Settings};
pub use session::Session;
