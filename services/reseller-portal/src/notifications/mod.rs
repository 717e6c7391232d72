//! Notifications: lists of a subscription's, and `/notifications/{id}`.

pub(crate) mod all;
pub(crate) mod document;
mod end;
mod failures;
pub(crate) mod list;
mod one;
mod story;
pub(crate) mod waiting;

pub(crate) use all::{__path_list_all, list_all};
pub(crate) use document::{NotificationDocument, RowDocument};
pub(crate) use failures::{__path_failures, failures};
pub(crate) use list::{__path_list, __path_scheduled, SHOWN, list, scheduled};
pub(crate) use one::{
    __path_cancel, __path_find, __path_resend, SentAgain, cancel, find, resend, resend_each,
};
pub(crate) use story::{__path_story, find_with_story, story};
pub(crate) use waiting::{__path_scheduled_summary, WaitsFor, scheduled_summary};
