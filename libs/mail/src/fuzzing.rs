//! Doors to what is private here, for the properties of `testing/fuzz/properties`. They add nothing of their own.

use lettre::message::Mailbox;

use crate::{StoredMail, Unreadable};

/// Whether a refusal of a mail server is about who we are rather than about the recipient.
pub fn is_policy(code: u16, text: &str) -> bool {
    crate::session::is_policy(code, text)
}

/// The bytes that a mail server is given.
///
/// # Panics
///
/// When `from` is no mailbox.
pub fn composed(stored: &StoredMail, from: &str) -> Result<Vec<u8>, Unreadable> {
    let from: Mailbox = from.parse().expect("a mailbox");
    Ok(stored.seal(&from, None, stored.created_at)?.content)
}
