//! Subscriptions: `/subscriptions` and what is directly below it.

pub(crate) mod change;
mod command;
pub(crate) mod create;
mod document;
pub(crate) mod email;
mod read;
pub(crate) mod test_event;
mod version;

pub(crate) use change::{__path_change, change};
pub(crate) use command::{
    __path_activate, __path_deactivate, __path_pause, __path_resume, __path_verify, activate, deactivate,
    pause, resume, verify,
};
pub(crate) use create::{__path_create, create};
pub(crate) use document::SubscriptionDocument;
pub(crate) use email::{__path_confirm_email, __path_resend_code, confirm_email, resend_code};
pub(crate) use read::{__path_delete, __path_find, __path_list, delete, find, list};
pub(crate) use test_event::{__path_send_test, send_test};
