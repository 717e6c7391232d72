//! The mix of events: every way that a notification can go, and a crowd that is simply delivered.

use std::collections::BTreeMap;

use anyhow::Context as _;
use domain::push::PushStatus;
use serde_json::value::RawValue;
use simulators::receiver::{Match, Pattern, Rule};

use super::case::{Case, Expected};
use super::subscriptions::{CROWD_TYPE, GONE_TYPE, QUOTA, QUOTA_TYPE, TIMEOUT, paths};
use crate::demo::case::Attempts;
use crate::ingest::EventRequest;
use crate::portal::EventType;

/// Events of each kind that fails once.
const SOME: u32 = 3;
/// More than the quota.
const OVER_QUOTA: u32 = QUOTA + 3;
/// No subscription of the demo is for these.
const UNWANTED_TYPE: &str = "order.completed";

/// The start of the identifiers of the crowd.
pub(super) fn crowd(run: &str) -> String {
    format!("demo-{run}-crowd-")
}

/// All cases, of this reseller. `run` makes their identifiers different from those of other runs.
pub(super) fn cases(
    run: &str,
    reseller: &str,
    events: u32,
    catalogue: Vec<EventType>,
) -> anyhow::Result<Vec<Case>> {
    let examples = catalogue.into_iter().map(|known| (known.name, known.example));
    let mix = Mix {
        run,
        reseller,
        examples: examples.collect(),
    };
    let mut cases = mix.delivered(events)?;
    cases.extend(mix.transient_failures()?);
    cases.extend(mix.permanent_failures()?);
    cases.extend(mix.special_requests()?);
    Ok(cases)
}

struct Mix<'a> {
    run: &'a str,
    reseller: &'a str,
    examples: BTreeMap<String, Box<RawValue>>,
}

impl Mix<'_> {
    fn delivered(&self, events: u32) -> anyhow::Result<Vec<Case>> {
        Ok(vec![
            case(
                "delivered",
                self.requests("crowd", CROWD_TYPE, events)?,
                notified(PushStatus::Sent, 1),
            ),
            case(
                "without a subscription",
                self.requests("unwanted", UNWANTED_TYPE, SOME)?,
                Expected::Unwanted,
            ),
            case(
                "over a daily quota of 2",
                self.requests("quota", QUOTA_TYPE, OVER_QUOTA)?,
                Expected::Quota(QUOTA as usize),
            ),
        ])
    }

    fn transient_failures(&self) -> anyhow::Result<Vec<Case>> {
        let dropped = Rule {
            drop: true,
            ..Rule::default()
        };
        let late = Rule {
            delay_millis: Some(3 * TIMEOUT),
            ..Rule::default()
        };
        let mut limited = Rule::answering(429);
        limited.headers.insert("Retry-After".to_owned(), "1".to_owned());
        let failures = [
            ("503 at first", "busy", Rule::answering(503)),
            ("429 at first", "limited", limited),
            ("connection lost at first", "broken", dropped),
            ("too slow at first", "late", late),
        ];
        let failing = |(kind, name, rule): (_, _, Rule)| {
            let requests = self.requests(name, CROWD_TYPE, SOME)?;
            Ok(Case {
                rules: vec![self.about(name, rule.first(1))],
                ..case(kind, requests, notified(PushStatus::Sent, 2))
            })
        };
        failures.into_iter().map(failing).collect()
    }

    fn permanent_failures(&self) -> anyhow::Result<Vec<Case>> {
        let given_up = Expected::Notified {
            status: PushStatus::GivenUp,
            attempts: Attempts::AtLeast(1),
        };
        let refused = self.requests("refused", CROWD_TYPE, 1)?;
        let hopeless = self.requests("hopeless", CROWD_TYPE, 1)?;
        let gone = self.requests("gone", GONE_TYPE, 1)?;
        Ok(vec![
            Case {
                rules: vec![self.about("refused", Rule::answering(404))],
                ..case(
                    "404, refused by the endpoint",
                    refused,
                    notified(PushStatus::Failed, 1),
                )
            },
            Case {
                rules: vec![self.about("hopeless", Rule::answering(500))],
                ..case("500 every time", hopeless, given_up)
            },
            Case {
                rules: vec![self.about("gone", Rule::answering(410))],
                ..case(
                    "410, ends its subscription",
                    gone,
                    notified(PushStatus::Failed, 1),
                )
            },
        ])
    }

    fn special_requests(&self) -> anyhow::Result<Vec<Case>> {
        let mut repeated = self.requests("repeated", CROWD_TYPE, 1)?;
        repeated.extend(self.requests("repeated", CROWD_TYPE, 1)?);
        let mut unknown = self.requests("unknown", CROWD_TYPE, 1)?;
        unknown[0].event_type = "domain.exploded".to_owned();
        Ok(vec![
            case("same eventId twice", repeated, Expected::OneEvent),
            case(
                "unknown event type",
                unknown,
                Expected::Refused { fields: &["type"] },
            ),
        ])
    }

    fn requests(&self, name: &str, event_type: &str, count: u32) -> anyhow::Result<Vec<EventRequest>> {
        let example = self.examples.get(event_type);
        let example = example.with_context(|| format!("the catalogue has no event type {event_type}"))?;
        let request = |number| EventRequest {
            event_type: event_type.to_owned(),
            reseller_id: self.reseller.to_owned(),
            data: example.clone(),
            // The same for a repetition, which would otherwise be another event.
            occurred_at: None,
            event_id: Some(format!("{}{number}", self.prefix(name))),
        };
        Ok((1..=count).map(request).collect())
    }

    fn prefix(&self, name: &str) -> String {
        format!("demo-{}-{name}-", self.run)
    }

    /// The rule, for the events of one case alone, at the endpoints of this run: the reseller may have other subscriptions
    /// that they are delivered to.
    fn about(&self, name: &str, rule: Rule) -> Rule {
        Rule {
            matching: Match {
                id: Some(Pattern::Prefix {
                    prefix: self.prefix(name),
                }),
                path: Some(Pattern::Prefix {
                    prefix: paths(self.run),
                }),
                ..rule.matching
            },
            ..rule
        }
    }
}

fn case(kind: &'static str, requests: Vec<EventRequest>, expected: Expected) -> Case {
    Case {
        kind,
        requests,
        rules: Vec::new(),
        expected,
    }
}

const fn notified(status: PushStatus, attempts: u32) -> Expected {
    Expected::Notified {
        status,
        attempts: Attempts::Exactly(attempts),
    }
}
