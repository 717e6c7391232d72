//! R7, all at once: cancelling what of a subscription waits and matches, counted before anything is done.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use chrono::{DateTime, Utc};
use domain::capability::Capability;
use domain::counted;
use http_api::{Id, Params, Problem};
use pages::{Fields, TYPED_ABOVE, done_if};
use serde::Deserialize;
use store::ToCancel;
use url::form_urlencoded;
use uuid::Uuid;

use super::Route;
use super::confirm::Confirm;
use super::frame::Frame;
use crate::app::App;
use crate::cancellations::{self, CancellationPayload};
use crate::request::{Manager, Reseller};

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page("/app/s/{id}/cancel", ask),
        super::act("/app/s/{id}/cancel", cancel),
    ]
}

/// What is in the address: which of what waits, up to when, and how many were counted.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Chosen {
    status: Option<String>,
    event_type: Option<String>,
    until: Option<DateTime<Utc>>,
    counted: Option<u64>,
}

impl Chosen {
    /// What comes after the page was asked for is not meant.
    fn payload(&self, now: DateTime<Utc>) -> CancellationPayload {
        CancellationPayload {
            status: self.status.clone(),
            event_type: self.event_type.clone(),
            until: Some(self.until.unwrap_or(now)),
            ..CancellationPayload::default()
        }
    }
}

fn to_type(count: u64) -> Option<String> {
    (count > TYPED_ABOVE).then(|| count.to_string())
}

fn form(frame: &Frame, id: Uuid, payload: &CancellationPayload, counted: &ToCancel) -> Confirm {
    let count = counted.ids.len() as u64;
    let by_status = counted.by_status.iter();
    let by_status: Vec<_> = by_status
        .map(|(status, count)| format!("{} {}", frame.number(*count), frame.word(status)))
        .collect();
    let mut said = match (count, counted.more) {
        (0, false) => vec!["Nothing waits that matches: there is nothing to cancel.".to_owned()],
        (0, true) => vec!["So many wait that not all were looked at. None of the first ones matches.".to_owned()],
        _ => vec![
            format!("They wait now: {}.", by_status.join(", ")),
            "They are not sent any more, neither by a resend nor by a replay: this cannot be undone. What had been delivered and waits to be \
             sent again stays delivered. What is being sent, or has ended when it comes to it, is left alone."
                .to_owned(),
        ],
    };
    if count > 0 && counted.more {
        said.push("More may match than are cancelled at once: ask again for those.".to_owned());
    }
    let words = [
        ("status", payload.status.clone()),
        ("eventType", payload.event_type.clone()),
        ("until", payload.until.map(|until| until.to_rfc3339())),
        ("counted", Some(count.to_string())),
    ];
    let words = words.into_iter().filter_map(|(name, word)| Some((name, word?)));
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(words)
        .finish();
    Confirm {
        id: "cancel-many",
        title: format!("Cancel {}", counted::of(count, "notification", "notifications")),
        said,
        action: format!("/app/s/{id}/cancel?{query}"),
        back: format!("/app/s/{id}/scheduled"),
        button: if count == 0 { "" } else { "Cancel them" },
        is_dangerous: true,
        expected: to_type(count),
        needs: "manage",
        may: frame.may(Capability::Manage),
        in_dialog: false,
        typed: None,
    }
}

async fn ask(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
    Params(chosen): Params<Chosen>,
) -> Result<Response, Problem> {
    let payload = chosen.payload(app.now());
    let counted = cancellations::count(&app, &reseller, id, &payload).await?;
    Ok(form(&frame, id, &payload, &counted).page(frame))
}

/// Whether so many may be cancelled as match now: no more than were shown, with the number of then typed where it has to be.
fn is_agreed(count: u64, shown: u64, typed: Option<&str>) -> bool {
    let is_typed = shown <= TYPED_ABOVE || typed == Some(shown.to_string().as_str());
    shown > 0 && count <= shown && is_typed
}

async fn cancel(
    State(app): State<Arc<App>>,
    manager: Manager,
    frame: Frame,
    Id(id): Id,
    Params(chosen): Params<Chosen>,
    fields: Fields,
) -> Result<Response, Problem> {
    let payload = chosen.payload(app.now());
    let found = cancellations::count(&app, &manager, id, &payload).await?;
    let (count, shown) = (found.ids.len() as u64, chosen.counted.unwrap_or_default());
    if !is_agreed(count, shown, fields.get("name")) {
        let mut form = form(&frame, id, &payload, &found);
        if count > shown {
            let more = "More match now than were shown: nothing is cancelled yet.";
            form.said.insert(0, more.to_owned());
        } else {
            form.check(&fields);
        }
        return Ok(form.page(frame));
    }
    let ended = cancellations::cancel_found(&app, &manager, (id, &payload), found).await?;
    let are = counted::of(ended.cancelled, "is", "are");
    let delivered = match ended.delivered {
        0 => String::new(),
        delivered => format!(
            " {} of them had been delivered before, and that stays so.",
            frame.number(delivered)
        ),
    };
    let left = match ended.matching.saturating_sub(ended.cancelled) {
        0 => "",
        _ => " The others were being sent or had ended.",
    };
    let more = if ended.more {
        " More may match: cancel those as well."
    } else {
        ""
    };
    let said = format!("{are} cancelled and not sent any more.{delivered}{left}{more}");
    let place = format!("/app/s/{id}/scheduled");
    Ok(done_if(ended.cancelled > 0, &place, &said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_agreed_to_is_what_was_shown() {
        for (count, shown, typed, is_right) in [
            (3, 3, None, true),
            (2, 3, None, true),
            (4, 3, None, false),
            (0, 0, None, false),
            (1_990, 2_000, Some("2000"), true),
            (1_990, 2_000, Some("1990"), false),
            (2_000, 2_000, None, false),
            (2_001, 2_000, Some("2000"), false),
        ] {
            assert_eq!(
                is_agreed(count, shown, typed),
                is_right,
                "{count} of {shown}, {typed:?}"
            );
        }
    }
}
