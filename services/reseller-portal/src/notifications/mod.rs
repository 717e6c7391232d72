//! Notifications: lists of a subscription's, and `/notifications/{id}`.

pub(crate) mod document;
mod end;
pub(crate) mod list;
mod one;

pub(crate) use document::{NotificationDocument, RowDocument};
pub(crate) use list::{__path_list, __path_scheduled, list, scheduled};
pub(crate) use one::{__path_find, __path_resend, find, resend};
