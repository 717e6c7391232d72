//! The mail about an endpoint that did not answer its challenges.

use super::{Circumstances, facts, name, paragraph, steps};
use crate::news::FailedVerification;
use crate::page::Page;

pub(super) fn page(failure: &FailedVerification, circumstances: Circumstances) -> Page {
    let mut facts = facts(&failure.subject, circumstances);
    facts.extend(
        failure
            .attempts
            .map(|attempts| ("Challenges", attempts.to_string())),
    );
    facts.push(("Last error", failure.error.clone()));
    Page {
        subject: format!("{}: the endpoint could not be verified", name(&failure.subject)),
        headline: "Your endpoint did not answer its challenges as it has to.".to_owned(),
        blocks: vec![
            paragraph(
                "Nothing is sent to an endpoint before it has shown that it wants to be sent to. The subscription stays \
                 PENDING_VERIFICATION and gets no notifications; the endpoint is not challenged again by itself.",
            ),
            steps([
                "Let the endpoint accept requests of the type postrider.verification: a POST whose JSON body holds \
                 data.challenge.",
                "Answer each with a status from 200 to 299 and the challenge as the body, either as plain text or as \
                 {\"challenge\": \"...\"}.",
                "Start over when it does: POST /subscriptions/{subscription}/verify.",
            ]),
        ],
        facts,
    }
}
