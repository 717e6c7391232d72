//! The mix of pushes: every way that a push can go, and a crowd that simply arrives.

use chrono::{DateTime, Datelike as _, Utc};
use domain::push::{ErrorType, PushStatus};
use simulators::swrve::{Match, Pattern, Rule};

use super::case::{Attempts, Case, Expected, Request};
use crate::ingest::PushRequest;

/// Pushes of each kind that fails once.
const SOME: u32 = 5;

const DELIVERED: Expected = ended(PushStatus::Sent, 1, None);
const DELIVERED_AT_SECOND: Expected = ended(PushStatus::Sent, 2, None);
const WITHOUT_KEY: Expected = ended(PushStatus::Failed, 1, Some(ErrorType::MessagePrototypeKey));

const fn ended(status: PushStatus, attempts: u32, error: Option<ErrorType>) -> Expected {
    Expected::Status {
        status,
        attempts: Attempts::Exactly(attempts),
        error,
    }
}

/// The start of the `pushKey` of every push of the crowd, which tells them apart at the simulator.
pub(crate) const CROWD: &str = "crowd-";

/// All cases. `run` makes their devices and keys different from those of other runs.
pub(crate) fn cases(run: &str, pushes: u32, now: DateTime<Utc>) -> Vec<Case> {
    let mix = Mix { run };
    let mut cases = mix.crowd(pushes);
    cases.extend(mix.transient_failures());
    cases.extend(mix.permanent_failures());
    cases.extend(mix.windows(now));
    cases.extend(mix.special_requests());
    cases
}

struct Mix<'a> {
    run: &'a str,
}

impl Mix<'_> {
    fn crowd(&self, pushes: u32) -> Vec<Case> {
        let android = pushes / 2;
        vec![
            case(
                "plain, IOS",
                self.requests("crowd-ios", "IOS", pushes - android),
                DELIVERED,
            ),
            case(
                "plain, ANDROID",
                self.requests("crowd-android", "ANDROID", android),
                DELIVERED,
            ),
        ]
    }

    fn transient_failures(&self) -> Vec<Case> {
        let answering = |status| Rule {
            status: Some(status),
            ..Rule::default()
        };
        let dropped = Rule {
            drop: true,
            ..Rule::default()
        };
        [
            ("503 at first", "busy", answering(503)),
            ("429 at first", "limited", answering(429)),
            ("connection lost at first", "broken", dropped),
        ]
        .into_iter()
        .map(|(kind, name, rule)| {
            let requests = self.requests(name, "IOS", SOME);
            let once = |request: &Request| Rule {
                times: Some(1),
                delay_millis: Some(100),
                ..about(request, rule.clone())
            };
            Case {
                rules: requests.iter().map(once).collect(),
                ..case(kind, requests, DELIVERED_AT_SECOND)
            }
        })
        .collect()
    }

    fn permanent_failures(&self) -> Vec<Case> {
        let answering = |status, message: &str| Rule {
            status: Some(status),
            message: Some(message.to_owned()),
            delay_millis: Some(100),
            ..Rule::default()
        };
        let refused = self.requests("refused", "ANDROID", 1);
        let hopeless = self.requests("hopeless", "ANDROID", 1);
        let given_up = Expected::Status {
            status: PushStatus::GivenUp,
            attempts: Attempts::AtLeast(1),
            error: Some(ErrorType::Swrve),
        };
        vec![
            Case {
                rules: vec![about(&refused[0], answering(400, "Invalid push_key"))],
                ..case(
                    "400, refused by Swrve",
                    refused,
                    ended(PushStatus::Failed, 1, Some(ErrorType::Swrve)),
                )
            },
            Case {
                rules: vec![about(&hopeless[0], answering(500, "Internal Server Error"))],
                ..case("500 every time", hopeless, given_up)
            },
            self.without_key("unknown message prototype", "unknown", Some("No such prototype")),
            self.without_key("no message prototype", "none", None),
        ]
    }

    fn without_key(&self, kind: &'static str, name: &str, prototype: Option<&str>) -> Case {
        let mut requests = self.requests(name, "IOS", 1);
        requests[0].push.message_prototype_key = prototype.map(str::to_owned);
        case(kind, requests, WITHOUT_KEY)
    }

    fn windows(&self, now: DateTime<Utc>) -> Vec<Case> {
        let mut open = self.requests("open", "IOS", 1);
        open[0].push.cron_expression = Some("* * * * * ?".to_owned());
        let mut later = self.requests("later", "ANDROID", 1);
        later[0].push.cron_expression = Some(format!("0 0 12 1 1 ? {}", now.year() + 1));
        let waiting = ended(PushStatus::Scheduled, 0, None);
        vec![
            case("window open now", open, DELIVERED),
            case("window next year", later, waiting),
        ]
    }

    fn special_requests(&self) -> Vec<Case> {
        let mut repeated = self.requests("repeated", "ANDROID", 1);
        repeated[0].idempotency_key = Some(format!("demo-{}", self.run));
        let again = Request {
            push: repeated[0].push.clone(),
            idempotency_key: repeated[0].idempotency_key.clone(),
        };
        repeated.push(again);
        let mut invalid = self.requests("invalid", "BEOS", 1);
        invalid[0].push.message = String::new();
        invalid[0].push.cron_expression = Some("0 61 * * * ?".to_owned());
        let once = Expected::OnePush {
            status: PushStatus::Sent,
        };
        let fields = &["platform", "message", "cronExpression"];
        vec![
            case("same Idempotency-Key twice", repeated, once),
            case("invalid fields", invalid, Expected::Refused { fields }),
        ]
    }

    fn requests(&self, name: &str, platform: &str, count: u32) -> Vec<Request> {
        let request = |number| Request {
            push: PushRequest {
                platform: platform.to_owned(),
                message_prototype_key: Some("Hello".to_owned()),
                push_key: format!("{name}-{}-{number}", self.run),
                message: format!("Hello client {number}!"),
                cron_expression: None,
            },
            idempotency_key: None,
        };
        (1..=count).map(request).collect()
    }
}

fn case(kind: &'static str, requests: Vec<Request>, expected: Expected) -> Case {
    Case {
        kind,
        requests,
        rules: Vec::new(),
        expected,
    }
}

/// The rule, for the push of this request alone.
fn about(request: &Request, rule: Rule) -> Rule {
    Rule {
        matching: Match {
            user: Some(Pattern::Exact(request.push.push_key.clone())),
            ..Match::default()
        },
        ..rule
    }
}
