//! The mail about notifications that were sent again by themselves after an outage.

use domain::subscription::RecoveryEnd;

use super::{Circumstances, facts, name, paragraph, steps};
use crate::news::Recovery;
use crate::page::Page;

pub(super) fn page(recovery: &Recovery, circumstances: Circumstances) -> Page {
    let count = |count: u64| match count {
        1 => "1 notification".to_owned(),
        count => format!("{count} notifications"),
    };
    let (what, verb) = (
        count(recovery.count),
        if recovery.count == 1 { "was" } else { "were" },
    );
    let mut facts = facts(&recovery.subject, circumstances);
    facts.push(("Sent again", recovery.count.to_string()));
    if recovery.remaining > 0 {
        facts.push(("Not sent again", remaining(recovery.remaining)));
    }
    Page {
        subject: format!("{}: {what} sent again after an outage", name(&recovery.subject)),
        headline: format!("{what} {verb} sent again, because your endpoint answers again."),
        blocks: vec![
            paragraph(
                "They had been given up while your endpoint did not answer, did not answer in time or answered with an \
                 error. They were sent in the order in which they had been given up, each with the identifier that it had \
                 before; what you have had already you know by that.",
            ),
            paragraph(rest(recovery)),
            steps([
                "See what became of them: GET /subscriptions/{subscription}/notifications.",
                "Have what is left sent again, POST /notifications/{id}/resend or, for all of a time, POST \
                 /subscriptions/{subscription}/replays.",
                "If you would rather ask for it yourself after an outage, switch this off: PATCH \
                 /subscriptions/{subscription} with {\"resendAfterOutage\": false}.",
            ]),
        ],
        facts,
    }
}

/// Dead letters are counted up to this number.
fn remaining(count: u64) -> String {
    const COUNTED_MAX: u64 = 100_000;
    if count >= COUNTED_MAX {
        return format!("{COUNTED_MAX} or more");
    }
    count.to_string()
}

/// What is to be known of those that were not sent again.
fn rest(recovery: &Recovery) -> String {
    let left = remaining(recovery.remaining);
    match recovery.because.as_deref().and_then(|end| end.parse().ok()) {
        _ if recovery.remaining == 0 => "Nothing is left of what your endpoint's outage gave up. What failed again is \
                                         retried as always, and sent again after the next outage, three times at most."
            .to_owned(),
        Some(RecoveryEnd::Failing) => format!(
            "Then your endpoint failed again, so {left} were not sent. It goes on by itself once it answers, some minutes \
             after that."
        ),
        Some(RecoveryEnd::Inactive) => format!(
            "Then the subscription ceased to be active, so {left} were not sent. It goes on by itself when the subscription \
             is active again."
        ),
        Some(RecoveryEnd::SwitchedOff) => {
            format!("Then you switched it off, so {left} were not sent, and will not be by themselves.")
        }
        _ => format!(
            "Then the operators of Postrider stopped it, so {left} were not sent, and will not be by themselves."
        ),
    }
}
