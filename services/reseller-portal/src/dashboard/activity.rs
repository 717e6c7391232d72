//! R15: who did what, and which mails went out.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use http_api::paging::List;
use http_api::{Params, Problem};
use pages::Page;

use super::Route;
use super::frame::Frame;
use crate::activity::{self, ActivityDocument, ActivityParams, MailDocument};
use crate::app::App;
use crate::request::{PartParams, Reseller};

/// The kinds of things that acts are done to.
const KINDS: [(&str, &str); 6] = [
    ("subscription", "Subscriptions"),
    ("secret", "Secrets"),
    ("notification", "Notifications"),
    ("replay", "Replays"),
    ("quota-request", "Quota requests"),
    ("portal-link", "Links to this dashboard"),
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page("/app/activity", page),
        super::page("/app/activity/mails", mails),
    ]
}

#[derive(Template)]
#[template(path = "activity.html")]
struct Activity {
    frame: Frame,
    acts: List<ActivityDocument>,
}

impl Activity {
    fn kinds(&self) -> [(&'static str, &'static str); 6] {
        KINDS
    }

    fn details(&self, act: &ActivityDocument) -> String {
        let details = act.details.as_ref().filter(|details| !details.is_null());
        details.map_or_else(String::new, ToString::to_string)
    }
}

#[derive(Template)]
#[template(path = "activity_mails.html")]
struct Mails {
    frame: Frame,
    mails: List<MailDocument>,
}

impl Mails {
    fn said(&self, mail: &MailDocument) -> &'static str {
        match mail.kind {
            "RETRIES_EXHAUSTED" => "Notifications were given up",
            "STATE_CHANGED" => "The state changed",
            "VERIFICATION_FAILED" => "The endpoint did not answer its challenge",
            "DELIVERY_REFUSED" => "The endpoint refused notifications",
            "QUOTA_DECIDED" => "A quota request was decided",
            "ADDRESS_CONFIRMATION" => "The code that confirms the address",
            "SECURITY_CHANGED" => "A secret, the endpoint or the address changed",
            "DELIVERIES_RECOVERED" => "The endpoint works again",
            _ => "Another occasion",
        }
    }
}

async fn page(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    params: Params<ActivityParams>,
) -> Result<impl IntoResponse, Problem> {
    let acts = activity::list(State(app), reseller, params).await?.0;
    Ok(Page(Activity { frame, acts }))
}

async fn mails(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    params: Params<PartParams>,
) -> Result<impl IntoResponse, Problem> {
    let mails = activity::mails(State(app), reseller, params).await?.0;
    Ok(Page(Mails { frame, mails }))
}
