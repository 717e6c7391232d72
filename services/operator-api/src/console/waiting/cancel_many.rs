//! `/console/waiting/cancel`: cancelling all that wait and match, counted before anything is done.

use std::sync::Arc;

use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use domain::counted::number;
use http_api::{Params, Payload, Problem};
use pages::TYPED_ABOVE;
use serde::Deserialize;
use store::Lane;
use url::form_urlencoded;
use uuid::Uuid;

use super::going_on::{self, SoFar, came_of, none, rest};
use super::{ALL_THAT_WAITS, WAITING, WaitingParams};
use crate::app::App;
use crate::cancellations::{self, CancellationDocument, CancellationPayload, WaitingFilter};
use crate::console::act::{ActForm, typed};
use crate::console::frame::{Frame, done_if, not_done};
use crate::console::visit::Fields;
use crate::request::Operator;

const HERE: &str = "/console/waiting/cancel";

/// The page.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route(HERE, get(ask).post(cancel))
}

/// What is in the address: the words of the list, up to when, and how many were counted.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Chosen {
    lane: Option<String>,
    status: Option<String>,
    prototype: Option<String>,
    platform: Option<String>,
    reseller: Option<String>,
    subscription: Option<Uuid>,
    url: Option<String>,
    reason: Option<String>,
    event_type: Option<String>,
    code: Option<String>,
    error: Option<String>,
    since: Option<String>,
    until: Option<String>,
    counted: Option<u64>,
}

/// Where what a list shows is cancelled; none when it is filtered by what only a list knows, or by nothing, or shows what has ended.
pub(super) fn place(params: &WaitingParams) -> Option<String> {
    let only_listed = [
        &params.device,
        &params.event_id,
        &params.value,
        &params.ended_since,
        &params.ended_until,
        &params.late_by_seconds,
    ];
    // It is cancelled in one status, or in all that wait.
    let status = params.status.clone().filter(|status| status != ALL_THAT_WAITS);
    let waits = status.as_deref().is_none_or(|status| WAITING.contains(&status));
    let lane = match params.is_push() {
        true => Lane::Push,
        false => Lane::Reseller,
    };
    // With the others it has ended.
    let reasons = cancellations::reasons_of(lane);
    let waits = waits
        && params
            .reason
            .as_deref()
            .is_none_or(|reason| reasons.contains(&reason));
    if only_listed.iter().any(|word| word.is_some()) || !waits || !(params.filters() || status.is_some()) {
        return None;
    }
    let lane = Some(lane.as_str().to_owned());
    let words = [
        ("lane", &lane),
        ("status", &status),
        ("prototype", &params.prototype),
        ("platform", &params.platform),
        ("reseller", &params.reseller),
        ("subscription", &params.subscription),
        ("url", &params.url),
        ("reason", &params.reason),
        ("eventType", &params.event_type),
        ("code", &params.code),
        ("error", &params.error),
        ("since", &params.since),
        ("until", &params.until),
    ];
    let words = words
        .iter()
        .filter_map(|(name, word)| Some((*name, word.as_deref()?)));
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(words)
        .finish();
    Some(format!("{HERE}?{query}"))
}

impl Chosen {
    fn payload(&self, note: Option<String>, dry_run: bool) -> Result<CancellationPayload, Problem> {
        Ok(CancellationPayload {
            lane: self.lane.clone(),
            filter: WaitingFilter {
                status: self.status.clone(),
                prototype: self.prototype.clone(),
                platform: self.platform.clone(),
                reseller: self.reseller.clone(),
                subscription: self.subscription,
                url: self.url.clone(),
                reason: self.reason.clone(),
                event_type: self.event_type.clone(),
                code: self.code.clone(),
                error: self.error.clone(),
                since: super::moment("since", self.since.as_deref())?,
                until: super::moment("until", self.until.as_deref())?,
            },
            note,
            dry_run,
        })
    }

    /// The list of its lane.
    fn back(&self) -> &'static str {
        match self.is_push() {
            true => "/console/waiting",
            false => "/console/waiting?lane=reseller",
        }
    }

    fn is_push(&self) -> bool {
        self.lane.as_deref() == Some("push")
    }
}

/// What is said of those that match after the ones that are cancelled at once.
fn more(counted: &CancellationDocument) -> String {
    let least = match (counted.more, counted.left_at_least, counted.left) {
        (false, ..) => return String::new(),
        (true, _, 0) => return " More may match: they are counted again after these.".to_owned(),
        (true, true, _) => "At least ",
        (true, false, _) => "",
    };
    let left = number(counted.left);
    format!(" {least}{left} more match: they are counted again after these.")
}

/// What so many of a lane are called.
fn many(is_push: bool, count: u64) -> &'static str {
    match (is_push, count) {
        (true, 1) => "push",
        (true, _) => "pushes",
        (false, 1) => "notification",
        (false, _) => "notifications",
    }
}

fn form(frame: &Frame, chosen: &Chosen, counted: &CancellationDocument) -> ActForm {
    let (count, is_push) = (counted.matching, chosen.is_push());
    let many = many(is_push, count);
    let by_status: Vec<_> = counted
        .by_status
        .iter()
        .map(|(status, count)| format!("{} {status}", frame.number(*count)))
        .collect();
    let again = if is_push {
        "no replay sends them"
    } else {
        "neither their resellers nor a replay sends them"
    };
    let delivered = if is_push {
        ""
    } else {
        "What had been delivered and waits to be sent again stays delivered. "
    };
    let said = vec![
        format!(
            "{} {many} that wait now: {}.{}",
            frame.number(count),
            if by_status.is_empty() {
                "none".to_owned()
            } else {
                by_status.join(", ")
            },
            more(counted)
        ),
        format!(
            "They end as given up, and {again}: this cannot be undone. Their dead letters are discarded from the beginning, with your note. \
             {delivered}What is being sent, or has ended when it comes to it, is left alone."
        ),
    ];
    // What comes from now on is not meant, and what is typed is compared with what was counted here.
    let until = if chosen.until.is_some() {
        String::new()
    } else {
        frame.now.to_rfc3339()
    };
    let address = match until.as_str() {
        "" => frame.address.clone(),
        until => frame.with("until", until),
    };
    let (_, query) = address.split_once('?').unwrap_or_default();
    let kept = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "counted");
    let action = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(kept)
        .append_pair("counted", &count.to_string())
        .finish();
    ActForm {
        id: "cancel-many".to_owned(),
        title: format!("Cancel {} {many}", frame.number(count)),
        said,
        button: if counted.left > 0 {
            "Cancel the next 5,000"
        } else {
            "Cancel them"
        },
        is_dangerous: true,
        expected: (count > TYPED_ABOVE).then(|| count.to_string()),
        fields: counted.more.then(going_on::asked).into_iter().collect(),
        ..ActForm::new(frame, format!("{HERE}?{action}"), chosen.back().to_owned())
    }
}

async fn count(operator: &Operator, chosen: &Chosen) -> Result<CancellationDocument, Problem> {
    let payload = chosen.payload(None, true)?;
    let Json(counted) = Box::pin(cancellations::create(operator.clone(), Payload(payload))).await?;
    Ok(counted)
}

async fn ask(operator: Operator, frame: Frame, Params(chosen): Params<Chosen>) -> Result<Response, Problem> {
    let counted = count(&operator, &chosen).await?;
    if counted.matching == 0 {
        return Ok(not_done(chosen.back(), none(&counted)));
    }
    Ok(form(&frame, &chosen, &counted).page(frame))
}

async fn cancel(
    operator: Operator,
    frame: Frame,
    Params(chosen): Params<Chosen>,
    fields: Fields,
) -> Result<Response, Problem> {
    let counted = chosen.counted.unwrap_or_default();
    let agreed = match counted > TYPED_ABOVE {
        true => typed(&fields, &counted.to_string()),
        false => Ok(()),
    };
    let payload = chosen.payload(fields.get("note").map(str::to_owned), false)?;
    let so_far = SoFar::read(&fields)?;
    let cancelled = match agreed {
        Ok(()) => Box::pin(cancellations::create(operator.clone(), Payload(payload))).await,
        Err(problem) => Err(problem),
    };
    let about = (many(chosen.is_push(), 0), chosen.back());
    match (cancelled, so_far) {
        (Ok(Json(done_now)), Some(so_far)) => Ok(going_on::after(frame, about, (&fields, so_far), &done_now)),
        (Ok(Json(done_now)), None) => Ok(done_once(&frame, &chosen, &done_now)),
        (Err(problem), Some(so_far)) if so_far.has_begun() => {
            Ok(going_on::stopped(frame, about, (&fields, so_far), problem))
        }
        (Err(problem), _) => {
            let counted = count(&operator, &chosen).await?;
            form(&frame, &chosen, &counted).again(frame, &fields, problem)
        }
    }
}

/// Says what was done, where a person goes on or does not: on the list, or where those that are left are counted.
fn done_once(frame: &Frame, chosen: &Chosen, done_now: &CancellationDocument) -> Response {
    let (back, more) = if done_now.more && done_now.cancelled > 0 {
        (
            frame.with("counted", ""),
            " More wait that match: they are counted here.",
        )
    } else {
        (chosen.back().to_owned(), "")
    };
    let (came, rest) = (
        came_of(frame, done_now.cancelled, done_now.delivered),
        rest(frame, done_now),
    );
    done_if(done_now.cancelled > 0, &back, &format!("{came}{rest}{more}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_list_leads_to_the_cancellation_of_what_both_can_be_asked_for_alone() {
        let of = |change: fn(&mut WaitingParams)| {
            let mut params = WaitingParams {
                lane: Some("reseller".to_owned()),
                ..WaitingParams::default()
            };
            change(&mut params);
            place(&params)
        };
        let paused = of(|params| params.reason = Some("PAUSED".to_owned()));
        assert_eq!(
            paused.as_deref(),
            Some("/console/waiting/cancel?lane=reseller&reason=PAUSED")
        );
        let failing = of(|params| {
            params.url = Some("acme.example".to_owned());
            params.code = Some("5xx".to_owned());
        });
        assert_eq!(
            failing.as_deref(),
            Some("/console/waiting/cancel?lane=reseller&url=acme.example&code=5xx")
        );
        for ended_or_only_listed in [
            of(|params| params.reason = Some("EXPIRED".to_owned())),
            of(|params| params.value = Some("example.org".to_owned())),
            of(|_| ()),
        ] {
            assert_eq!(ended_or_only_listed, None);
        }
    }

    #[test]
    fn how_many_are_left_after_those_that_are_cancelled_at_once_is_said() {
        let counted = |left, at_least| CancellationDocument {
            matching: 5_000,
            left,
            left_at_least: at_least,
            by_status: BTreeMap::new(),
            oldest: None,
            newest: None,
            more: left > 0 || at_least,
            cancelled: 0,
            delivered: 0,
        };
        assert_eq!(more(&counted(0, false)), "");
        assert!(none(&counted(0, false)).starts_with("Nothing that waits matches any more"));
        assert!(none(&counted(0, true)).contains("not all were"));
        assert_eq!(
            more(&counted(1_200, false)),
            " 1,200 more match: they are counted again after these."
        );
        assert_eq!(
            more(&counted(15_000, true)),
            " At least 15,000 more match: they are counted again after these."
        );
        assert_eq!(
            more(&counted(0, true)),
            " More may match: they are counted again after these."
        );
    }
}
