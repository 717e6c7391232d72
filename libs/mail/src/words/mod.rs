//! The words of each kind of mail: what happened, what it means, what can be done.

mod address_confirmation;
mod deliveries_recovered;
mod delivery_refused;
mod quota_decided;
mod retries_exhausted;
mod security_changed;
mod state_changed;
mod verification_failed;

use chrono::{DateTime, TimeDelta, Utc};
use domain::origin::origin;
use uuid::Uuid;

use crate::News;
use crate::news::Subject;
use crate::page::{Block, Page};

/// What every mail knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances {
    pub(crate) subscription_id: Uuid,
    /// When it happened.
    pub(crate) at: DateTime<Utc>,
}

/// Writes the page that tells the news.
pub(crate) fn page(news: &News, circumstances: Circumstances) -> Page {
    let mut page = match news {
        News::StateChanged(change) => state_changed::page(change, circumstances),
        News::RetriesExhausted(exhaustion) => retries_exhausted::page(exhaustion, circumstances),
        News::VerificationFailed(failure) => verification_failed::page(failure, circumstances),
        News::DeliveryRefused(refusal) => delivery_refused::page(refusal, circumstances),
        News::QuotaDecided(decision) => quota_decided::page(decision, circumstances),
        News::AddressConfirmation(request) => address_confirmation::page(request, circumstances),
        News::SecurityChanged(change) => security_changed::page(change, circumstances),
        News::DeliveriesRecovered(recovery) => deliveries_recovered::page(recovery, circumstances),
    };
    let id = circumstances.subscription_id.to_string();
    for block in &mut page.blocks {
        if let Block::Steps(_, steps) = block {
            for step in steps {
                *step = step.replace(SUBSCRIPTION, &id);
            }
        }
    }
    page
}

/// Stands for the subscription's identifier in what can be done.
const SUBSCRIPTION: &str = "{subscription}";

fn paragraph(text: impl Into<String>) -> Block {
    Block::Paragraph(text.into())
}

fn steps<const N: usize>(steps: [&str; N]) -> Block {
    Block::Steps("What you can do:", steps.map(str::to_owned).to_vec())
}

fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// How long something took, in its largest unit: `3 days`.
fn span(span: TimeDelta) -> String {
    let count = |number: i64, unit| match number {
        1 => format!("1 {unit}"),
        number => format!("{number} {unit}s"),
    };
    if span.num_days() > 0 {
        count(span.num_days(), "day")
    } else if span.num_hours() > 0 {
        count(span.num_hours(), "hour")
    } else {
        count(span.num_minutes().max(1), "minute")
    }
}

/// What a subscription is called in a subject line: the host of its endpoint. Its description is what its owner wrote, and a
/// subject is read before its reader can tell whose words they are.
fn name(subject: &Subject) -> String {
    const LONGEST: usize = 60;
    let origin = origin(&subject.url);
    let host = origin.split_once("://").map_or(&*origin, |(_, host)| host);
    host.chars().take(LONGEST).collect()
}

/// The facts that stand in every mail.
fn facts(
    subject: &Subject,
    Circumstances { subscription_id, at }: Circumstances,
) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Subscription", subscription_id.to_string()),
        ("Endpoint", origin(&subject.url)),
        ("Reseller", subject.reseller_id.clone()),
        ("Time", time(at)),
    ];
    if !subject.description.trim().is_empty() {
        facts.insert(1, ("Description", subject.description.clone()));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_their_largest_unit() {
        for (seconds, told) in [
            (1, "1 minute"),
            (7_200, "2 hours"),
            (86_400, "1 day"),
            (431_999, "4 days"),
        ] {
            assert_eq!(span(TimeDelta::seconds(seconds)), told);
        }
    }

    #[test]
    fn a_subscription_is_called_by_its_host_whatever_its_description_says() {
        let subject = |url: &str| Subject {
            url: url.to_owned(),
            description: "URGENT: unpaid invoice".to_owned(),
            reseller_id: "acme".to_owned(),
        };
        assert_eq!(
            name(&subject("https://hooks.example.org:8443/a?b")),
            "hooks.example.org:8443"
        );
        assert_eq!(name(&subject("no url")), "an endpoint");
        let long = format!("https://{}.example", "a".repeat(100));
        assert_eq!(name(&subject(&long)).chars().count(), 60);
    }
}
