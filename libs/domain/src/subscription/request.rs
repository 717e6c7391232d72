//! What a reseller wants of a subscription, and whether it can be accepted. Whether the URL may be dialled is decided
//! elsewhere, by the client that dials it.

use std::time::Duration;

use super::EventFilter;
use super::field::{
    FieldError, Findings, check_description, check_email, check_filter, check_timeout, check_url,
};
use crate::notification::RetryPlan;

/// What a request is measured by.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    /// The event types that can be selected.
    pub catalogue: &'a [String],
    /// Longest timeout of a subscription.
    pub max_timeout: Duration,
}

/// A subscription as it was asked for.
#[derive(Debug, Clone, Default)]
pub struct SubscriptionDraft {
    /// Where to.
    pub url: Option<String>,
    /// Which events.
    pub event_types: Option<Vec<String>>,
    /// Who is told about trouble.
    pub email: Option<String>,
    /// The reseller's own words.
    pub description: Option<String>,
    /// How long the endpoint may take.
    pub timeout_millis: Option<i64>,
    /// Whether what an outage gives up is sent again by itself.
    pub resend_after_outage: Option<bool>,
    /// For how long what failed is tried again.
    pub retry_plan: Option<RetryPlan>,
    /// Whether answers from 400 to 499 are tried again.
    pub retry_client_errors: Option<bool>,
    /// Whether it is challenged only when its reseller asks for it.
    pub verify_later: Option<bool>,
    /// Whether a daily quota is asked for, whatever it is.
    pub daily_quota: bool,
    /// Whether a number of requests per second is asked for, whatever it is.
    pub requests_per_second: bool,
}

/// A subscription that was found acceptable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionRequest {
    /// Where to.
    pub url: String,
    /// Which events.
    pub event_types: Vec<EventFilter>,
    /// Who is told about trouble.
    pub email: String,
    /// The reseller's own words.
    pub description: String,
    /// How long the endpoint may take; the default when `None`.
    pub timeout_millis: Option<u32>,
    /// Whether what an outage gives up is sent again by itself; the default when `None`.
    pub resend_after_outage: Option<bool>,
    /// For how long what failed is tried again.
    pub retry_plan: RetryPlan,
    /// Whether answers from 400 to 499 are tried again.
    pub retry_client_errors: bool,
    /// Whether it is challenged only when its reseller asks for it.
    pub verify_later: bool,
}

/// Changes as they were asked for: of each field nothing, `null` or a value.
#[derive(Debug, Clone, Default)]
pub struct ChangeDraft {
    /// Where to.
    pub url: Option<Option<String>>,
    /// Which events.
    pub event_types: Option<Option<Vec<String>>>,
    /// Who is told about trouble.
    pub email: Option<Option<String>>,
    /// The reseller's own words.
    pub description: Option<Option<String>>,
    /// How long the endpoint may take.
    pub timeout_millis: Option<Option<i64>>,
    /// Whether what an outage gives up is sent again by itself.
    pub resend_after_outage: Option<Option<bool>>,
    /// For how long what failed is tried again.
    pub retry_plan: Option<Option<RetryPlan>>,
    /// Whether answers from 400 to 499 are tried again.
    pub retry_client_errors: Option<Option<bool>>,
    /// Whether the daily quota is to be changed, to whatever.
    pub daily_quota: bool,
    /// Whether the requests per second are to be changed, to whatever.
    pub requests_per_second: bool,
    /// What is named and changed by other requests, each with which one that is.
    pub elsewhere: Vec<(&'static str, &'static str)>,
}

/// Changes that were found acceptable; `None` changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriptionChange {
    /// Where to.
    pub url: Option<String>,
    /// Which events.
    pub event_types: Option<Vec<EventFilter>>,
    /// Who is told about trouble.
    pub email: Option<String>,
    /// The reseller's own words.
    pub description: Option<String>,
    /// How long the endpoint may take; the default when `Some(None)`.
    pub timeout_millis: Option<Option<u32>>,
    /// Whether what an outage gives up is sent again by itself; the default when `Some(None)`.
    pub resend_after_outage: Option<Option<bool>>,
    /// For how long what failed is tried again.
    pub retry_plan: Option<RetryPlan>,
    /// Whether answers from 400 to 499 are tried again.
    pub retry_client_errors: Option<bool>,
}

impl SubscriptionRequest {
    /// Checks everything that can be checked without asking anybody; the error lists every field that is wrong.
    pub fn check(draft: SubscriptionDraft, bounds: Bounds<'_>) -> Result<Self, Vec<FieldError>> {
        let mut found = Findings::default();
        let url = found.take(check_url(draft.url));
        let event_types = check_filter(draft.event_types, bounds.catalogue, &mut found.0);
        let email = found.take(check_email(draft.email));
        let description = found.take(check_description(draft.description));
        let timeout = found.take(check_timeout(draft.timeout_millis, bounds.max_timeout));
        found.refuse_limits(draft.daily_quota, draft.requests_per_second);
        match (url, event_types, email, description, timeout) {
            (Some(url), Some(event_types), Some(email), Some(description), Some(timeout_millis))
                if found.0.is_empty() =>
            {
                Ok(Self {
                    url,
                    event_types,
                    email,
                    description,
                    timeout_millis,
                    resend_after_outage: draft.resend_after_outage,
                    retry_plan: draft.retry_plan.unwrap_or_default(),
                    retry_client_errors: draft.retry_client_errors.unwrap_or_default(),
                    verify_later: draft.verify_later.unwrap_or_default(),
                })
            }
            _ => Err(found.0),
        }
    }
}

impl SubscriptionChange {
    /// Checks the fields that are to be changed; the error lists every one that is wrong.
    pub fn check(draft: ChangeDraft, bounds: Bounds<'_>) -> Result<Self, Vec<FieldError>> {
        let mut found = Findings::default();
        let url = draft.url.and_then(|url| found.take(check_url(url)));
        let event_types = draft
            .event_types
            .and_then(|list| check_filter(list, bounds.catalogue, &mut found.0));
        let email = draft.email.and_then(|email| found.take(check_email(email)));
        let description = draft
            .description
            .and_then(|description| found.take(check_description(description)));
        let timeout_millis = draft
            .timeout_millis
            .and_then(|timeout| found.take(check_timeout(timeout, bounds.max_timeout)));
        found.refuse_limits(draft.daily_quota, draft.requests_per_second);
        let elsewhere = draft.elsewhere.into_iter();
        found
            .0
            .extend(elsewhere.map(|(field, how)| FieldError::Elsewhere { field, how }));
        if !found.0.is_empty() {
            return Err(found.0);
        }
        Ok(Self {
            url,
            event_types,
            email,
            description,
            timeout_millis,
            resend_after_outage: draft.resend_after_outage,
            retry_plan: draft.retry_plan.map(Option::unwrap_or_default),
            retry_client_errors: draft.retry_client_errors.map(Option::unwrap_or_default),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Vec<String> {
        ["domain.created", "domain.transfer.completed", "contact.updated"]
            .map(str::to_owned)
            .to_vec()
    }

    fn bounds(catalogue: &[String]) -> Bounds<'_> {
        Bounds {
            catalogue,
            max_timeout: Duration::from_secs(30),
        }
    }

    fn draft() -> SubscriptionDraft {
        SubscriptionDraft {
            url: Some("https://reseller.example/hooks".to_owned()),
            event_types: Some(vec!["domain.*".to_owned()]),
            email: Some("ops@reseller.example".to_owned()),
            ..SubscriptionDraft::default()
        }
    }

    fn refused(draft: SubscriptionDraft) -> Vec<String> {
        let errors = SubscriptionRequest::check(draft, bounds(&catalogue())).unwrap_err();
        errors.iter().map(|error| error.field().into_owned()).collect()
    }

    fn filter(entries: &[&str]) -> Result<Vec<String>, Vec<FieldError>> {
        let event_types = Some(entries.iter().map(|entry| (*entry).to_owned()).collect());
        let draft = SubscriptionDraft {
            event_types,
            ..draft()
        };
        let request = SubscriptionRequest::check(draft, bounds(&catalogue()))?;
        Ok(request.event_types.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn every_wrong_field_is_listed_at_once() {
        let wrong = SubscriptionDraft {
            url: Some(" ".to_owned()),
            event_types: Some(Vec::new()),
            email: Some("nobody".to_owned()),
            description: Some("a\0".to_owned()),
            timeout_millis: Some(30_001),
            daily_quota: true,
            ..SubscriptionDraft::default()
        };
        assert_eq!(
            refused(wrong),
            [
                "url",
                "eventTypes",
                "email",
                "description",
                "timeoutMillis",
                "dailyQuota"
            ]
        );
        assert_eq!(
            refused(SubscriptionDraft::default()),
            ["url", "eventTypes", "email"]
        );
    }

    #[test]
    fn a_filter_holds_types_of_the_catalogue_their_prefixes_and_all() {
        let all = ["contact.updated", "domain.*", "domain.transfer.*", "*"];
        assert_eq!(filter(&all).unwrap(), all);
        assert_eq!(filter(&["*", "*"]).unwrap(), ["*"], "each once");
        let errors = filter(&["domain.created", "domain.deleted", "Domain.*", "dmain.*"]).unwrap_err();
        let fields: Vec<_> = errors.iter().map(FieldError::field).collect();
        assert_eq!(fields, ["eventTypes[1]", "eventTypes[2]", "eventTypes[3]"]);
        assert!(matches!(errors[1], FieldError::NoFilter { .. }));
        assert!(filter(&vec!["*"; 201]).is_err());
    }

    #[test]
    fn the_greatest_timeout_is_allowed_and_none_is_the_default() {
        for (millis, accepted) in [
            (1, true),
            (30_000, true),
            (0, false),
            (-1, false),
            (i64::MAX, false),
        ] {
            let draft = SubscriptionDraft {
                timeout_millis: Some(millis),
                ..draft()
            };
            let checked = SubscriptionRequest::check(draft, bounds(&catalogue()));
            assert_eq!(checked.is_ok(), accepted, "{millis}");
        }
        let request = SubscriptionRequest::check(draft(), bounds(&catalogue())).unwrap();
        assert_eq!((request.timeout_millis, request.description.as_str()), (None, ""));
    }

    #[test]
    fn a_change_touches_what_it_names_and_null_goes_back_to_the_default() {
        let draft = ChangeDraft {
            timeout_millis: Some(None),
            description: Some(None),
            retry_plan: Some(None),
            retry_client_errors: Some(Some(true)),
            ..ChangeDraft::default()
        };
        let change = SubscriptionChange::check(draft, bounds(&catalogue())).unwrap();
        let expected = SubscriptionChange {
            timeout_millis: Some(None),
            description: Some(String::new()),
            retry_plan: Some(RetryPlan::Short),
            retry_client_errors: Some(true),
            ..SubscriptionChange::default()
        };
        assert_eq!(change, expected);
    }

    #[test]
    fn what_is_needed_cannot_be_taken_away_and_limits_are_not_the_resellers() {
        let draft = ChangeDraft {
            url: Some(None),
            event_types: Some(None),
            email: Some(None),
            daily_quota: true,
            requests_per_second: true,
            elsewhere: vec![("secret", "make a new one")],
            ..ChangeDraft::default()
        };
        let errors = SubscriptionChange::check(draft, bounds(&catalogue())).unwrap_err();
        let fields: Vec<_> = errors.iter().map(FieldError::field).collect();
        assert_eq!(
            fields,
            [
                "url",
                "eventTypes",
                "email",
                "dailyQuota",
                "requestsPerSecond",
                "secret"
            ]
        );
        assert!(errors[3].to_string().contains("/quota-requests"));
        assert_eq!(errors[5].to_string(), "cannot be changed here; make a new one");
    }
}
