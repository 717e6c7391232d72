//! The mail about a decided request for another quota.

use super::{Circumstances, facts, name, paragraph, steps};
use crate::news::QuotaDecision;
use crate::page::Page;

pub(super) fn page(decision: &QuotaDecision, circumstances: Circumstances) -> Page {
    let mut facts = facts(&decision.subject, circumstances);
    facts.push(("Asked for", format!("{} a day", decision.requested)));
    if let Some(granted) = decision.granted {
        facts.push(("Granted", format!("{granted} a day")));
    }
    facts.extend(decision.note.clone().map(|note| ("Note", note)));
    let name = name(&decision.subject);
    let (subject, headline, blocks) = match decision.granted {
        Some(granted) => (
            format!("{name}: daily quota is now {granted}"),
            format!("Your request for another daily quota was approved: {granted} notifications a day."),
            vec![paragraph(
                "The quota holds from now on, for what waits as for what comes.",
            )],
        ),
        None => (
            format!("{name}: request for another daily quota denied"),
            format!(
                "Your request for a daily quota of {} notifications was denied.",
                decision.requested
            ),
            vec![
                paragraph(
                    "The quota stays as it is. What goes beyond it is sent on the following days, the oldest first.",
                ),
                steps([
                    "Look at what waits: GET /subscriptions/{subscription}/scheduled.",
                    "Let the filter select fewer event types: PATCH /subscriptions/{subscription}.",
                ]),
            ],
        ),
    };
    Page {
        subject,
        headline,
        blocks,
        facts,
    }
}
