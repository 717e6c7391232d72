//! R15: who did what, and which mails went out.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use domain::counted::number;
use http_api::paging::List;
use http_api::{Params, Problem, ReadParams};
use pages::{Filter, LeavingOut, Page, Without};
use serde::Deserialize;

use super::frame::Frame;
use super::{Route, words};
use crate::activity::{self, ActivityDocument, ActivityParams, MailDocument};
use crate::app::App;
use crate::request::{PartParams, Reseller};
use crate::subscriptions::SubscriptionDocument;

/// The kinds of things that acts are done to.
const KINDS: [(&str, &str); 6] = [
    ("subscription", "Subscriptions"),
    ("secret", "Secrets"),
    ("notification", "Notifications"),
    ("replay", "Replays"),
    ("quota", "Quotas"),
    ("portal-link", "Links to this dashboard"),
];

const FILTERS: [Filter; 3] = [
    Filter::new("What", &["action"]),
    Filter::new("Who", &["by"]),
    Filter::new("From and until", &["since", "until"]),
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page("/app/activity", page),
        super::page("/app/activity/mails", mails),
    ]
}

/// As the API has them, but for the times, which are as fields for them send them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActsAsked {
    action: Option<String>,
    by: Option<String>,
    since: Option<String>,
    until: Option<String>,
    limit: Option<u32>,
    cursor: Option<String>,
}

impl ActsAsked {
    /// The same as the list over the API takes it.
    pub(super) fn filter(&self, frame: &Frame) -> Result<ActivityParams, Problem> {
        let time = |name: &'static str, text: Option<&str>| words::asked(name, text, frame.preferences.zone);
        Ok(ActivityParams {
            since: time("since", self.since.as_deref())?,
            until: time("until", self.until.as_deref())?,
            action: self.action.clone(),
            by: self.by.clone(),
            limit: self.limit,
            cursor: self.cursor.clone(),
        })
    }
}

#[derive(Template)]
#[template(path = "activity.html")]
struct Activity {
    frame: Frame,
    acts: List<ActivityDocument>,
    /// Those that there are now, as many as pages know of.
    subscriptions: Vec<SubscriptionDocument>,
    leaving_out: LeavingOut,
}

impl Activity {
    fn kinds(&self) -> [(&'static str, &'static str); 6] {
        KINDS
    }

    fn field_of(&self, name: &str) -> String {
        words::field(&self.frame.asked(name), self.frame.preferences.zone)
    }

    fn is_filtered(&self) -> bool {
        ["action", "by", "since", "until"]
            .iter()
            .any(|name| !self.frame.asked(name).is_empty())
    }

    /// The name that is asked for alone, which stands beside the choices that there always are.
    fn asked_name(&self) -> Option<String> {
        let by = self.frame.asked("by");
        Some(by).filter(|by| !matches!(&**by, "" | "YOU" | "OPERATOR"))
    }

    /// Whether a subscription that is not among them is deleted.
    fn are_all_known(&self) -> bool {
        self.subscriptions.len() < super::SUBSCRIPTIONS_MAX as usize
    }

    /// What the subscription is called to which it was done; none of one that is not among them.
    fn place_of(&self, act: &ActivityDocument) -> Option<String> {
        let known = self
            .subscriptions
            .iter()
            .find(|it| Some(it.id) == act.subscription_id)?;
        Some(words::place(&known.url))
    }

    fn details(&self, act: &ActivityDocument) -> String {
        let cancelled = act.details.as_ref().and_then(|all| all["cancelled"].as_u64());
        if let (None, Some(count)) = (&act.name, cancelled) {
            return format!("{} of your waiting notifications", number(count));
        }
        let details = act.details.as_ref().filter(|details| !details.is_null());
        let details = details.map(ToString::to_string);
        let parts: Vec<String> = act.note.clone().into_iter().chain(details).collect();
        parts.join(" ")
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
    Params(params): Params<ActsAsked>,
) -> Result<impl IntoResponse, Problem> {
    let filter = params.filter(&frame)?;
    let acts = activity::list(State(Arc::clone(&app)), reseller.clone(), ReadParams::of(filter))
        .await?
        .0;
    let mut leaving_out = LeavingOut::of(&frame, &FILTERS);
    if acts.items.is_empty() && params.cursor.is_none() {
        for one in leaving_out.to_try() {
            let Some(others) = one.params::<ActsAsked>() else {
                break;
            };
            let asked = ActivityParams {
                limit: Some(Without::LOOKED_FOR),
                ..others.filter(&frame)?
            };
            let list = activity::list(State(Arc::clone(&app)), reseller.clone(), ReadParams::of(asked));
            // The list itself was read: its page is shown without this.
            let Ok(found) = list.await else { break };
            one.found(found.items.len(), found.next.is_some());
        }
    }
    Ok(Page(Activity {
        frame,
        acts,
        subscriptions: super::subscriptions_of(&app, &reseller).await?,
        leaving_out,
    }))
}

async fn mails(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    params: ReadParams<PartParams>,
) -> Result<impl IntoResponse, Problem> {
    let mails = activity::mails(State(app), reseller, params).await?.0;
    Ok(Page(Mails { frame, mails }))
}
