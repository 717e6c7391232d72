//! The mail about changes that a thief of the reseller's key would make, too.

use super::{Circumstances, facts, name, paragraph, steps, time};
use crate::news::{OneChange, SecurityChange};
use crate::page::Page;

pub(super) fn page(change: &SecurityChange, circumstances: Circumstances) -> Page {
    let mut facts = facts(&change.subject, circumstances);
    let listed = u64::try_from(change.changes.len()).unwrap_or(u64::MAX);
    if change.count > listed {
        facts.push((
            "Changes",
            format!("{}; the latest {listed} are listed", change.count),
        ));
    }
    facts.extend(change.changes.iter().map(|one| ("Change", told(one))));
    Page {
        subject: format!("{}: security settings changed", name(&change.subject)),
        headline: headline(&change.changes),
        blocks: vec![
            paragraph(
                "It was done with an API key of the reseller. Such changes are told to the address that was registered before \
                 them, and cannot be switched off; those that follow one another are gathered in one mail.",
            ),
            steps([
                "If it was you, nothing.",
                "If not, another person has your API key: have it revoked by the operators of this service, then look at the \
                 subscription's endpoint, address and secrets, and replace the secrets.",
            ]),
        ],
        facts,
    }
}

fn headline(changes: &[OneChange]) -> String {
    match changes {
        [one] => match &*one.what {
            "ENDPOINT" => "The endpoint of your subscription was changed.",
            "ADDRESS" => "The mail address of your subscription was changed.",
            "SECRET_MADE" => "A new signing secret was made for your subscription.",
            "SECRET_REVOKED" => "A signing secret of your subscription was revoked.",
            "DELETED" => "Your subscription was deleted.",
            _ => "Your subscription was changed.",
        }
        .to_owned(),
        _ => "Several settings of your subscription were changed.".to_owned(),
    }
}

fn told(change: &OneChange) -> String {
    let what = match &*change.what {
        "ENDPOINT" => "endpoint",
        "ADDRESS" => "mail address",
        "SECRET_MADE" => "new signing secret",
        "SECRET_REVOKED" => "signing secret revoked",
        "DELETED" => "subscription deleted",
        other => other,
    };
    let values = match (&change.from, &change.to) {
        (Some(from), Some(to)) => format!(": {from} -> {to}"),
        _ => String::new(),
    };
    format!("{what}{values} ({})", time(change.at))
}
