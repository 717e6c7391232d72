//! What must hold for whatever reaches Postrider from outside: one property for each kind of input, from bytes.
//!
//! A property takes any bytes and panics when it does not hold. `cargo fuzz` finds bytes by coverage, the tests of this
//! crate by proptest and from the corpus; both call the same functions. How to run them and how to add one:
//! `docs/fuzzing.md`. Nothing here ships, and nothing here knows where its bytes come from.

#![allow(
    clippy::missing_panics_doc,
    reason = "to panic is how a property says that it does not hold"
)]

pub mod address;
pub mod answers;
pub mod catalogue;
pub mod configuration;
pub mod cron;
pub mod curl_command;
pub mod dead_message;
pub mod endpoint;
pub mod envelope;
pub mod event_filter;
pub mod event_json;
pub mod id_token;
pub mod list_query;
pub mod mail_text;
pub mod operator_body;
pub mod payload_schema;
pub mod push_json;
pub mod request_headers;
pub mod scripts;
pub mod secrets;
pub mod signature;
pub mod subscription_json;

mod given;
mod raw_object;

/// A property: what `cargo fuzz` calls it, and the check.
#[derive(Clone, Copy)]
pub struct Property {
    /// The name of the target, of its file and of its folder in the corpus.
    pub name: &'static str,
    /// Panics when the property does not hold for these bytes.
    pub check: fn(&[u8]),
}

/// Gives the names of all properties to another macro.
#[macro_export]
macro_rules! with_all_names {
    ($list:ident) => {
        $list!(
            address,
            answers,
            catalogue,
            configuration,
            cron,
            curl_command,
            dead_message,
            endpoint,
            envelope,
            event_filter,
            event_json,
            id_token,
            list_query,
            mail_text,
            operator_body,
            payload_schema,
            push_json,
            request_headers,
            scripts,
            secrets,
            signature,
            subscription_json,
        );
    };
}

macro_rules! properties {
    ($($name:ident),* $(,)?) => {
        /// Every property there is.
        pub const ALL: &[Property] = &[$(Property { name: stringify!($name), check: $name::check }),*];
    };
}

with_all_names!(properties);
