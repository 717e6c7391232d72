//! The body of `POST /push`.
//!
//! It deliberately judges no value: that is `domain`'s part.

use std::borrow::Cow;

use domain::push::Platform;
use serde::Deserialize;
use utoipa::ToSchema;

/// A push to send.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schema(as = PushRequest)]
pub(crate) struct Payload<'a> {
    /// The platform of the client's device.
    #[serde(borrow, default)]
    #[schema(value_type = Platform, required = true)]
    pub(crate) platform: Option<Cow<'a, str>>,
    /// Names the message prototype, whose Swrve push key is used. May be absent or unknown: such a push is accepted and
    /// fails when it is to be sent.
    #[serde(default)]
    #[schema(example = "Hello")]
    pub(crate) message_prototype_key: Option<String>,
    /// The client's device id in Swrve.
    #[serde(default)]
    #[schema(value_type = String, required = true, min_length = 1, example = "463B3209-6E33-4E88-AF52-CDA87C0550EC")]
    pub(crate) push_key: Option<String>,
    /// The text of the push.
    #[serde(default)]
    #[schema(value_type = String, required = true, min_length = 1, example = "Hello client!")]
    pub(crate) message: Option<String>,
    /// A Quartz cron expression that describes when the push may be sent, in the time zone `push.timeZone`; at any time
    /// when absent or null. It is sent once, at the first time that it gets to, which `GET /push/{id}` has as `nextAttemptAt`.
    #[serde(default)]
    #[schema(example = "* * 9-17 ? * MON-FRI")]
    pub(crate) cron_expression: Option<String>,
}
