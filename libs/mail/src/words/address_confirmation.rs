//! The mail that asks whether an address is its reader's. It goes to whatever address a reseller named, so that it says
//! nothing in that reseller's words: no description, no URL.

use super::{Circumstances, paragraph, steps, time};
use crate::news::ConfirmationRequest;
use crate::page::Page;

pub(super) fn page(request: &ConfirmationRequest, circumstances: Circumstances) -> Page {
    Page {
        subject: "confirm this address".to_owned(),
        headline: format!("The code that confirms this address is {}.", request.code),
        blocks: vec![
            paragraph(
                "A reseller wants mails about one of its subscriptions to come to this address. Nothing but mails such as this \
                 one is sent here before it has given the code back.",
            ),
            steps([
                "If that is you: POST /subscriptions/{subscription}/email/confirm with the code, within seven days. It holds \
                 for every subscription of yours with this address.",
                "If it is not, do nothing: without the code no further mails come, and this one is sent at most three times a \
                 day.",
            ]),
        ],
        facts: vec![
            ("Code", request.code.clone()),
            ("Subscription", circumstances.subscription_id.to_string()),
            ("Reseller", request.reseller_id.clone()),
            ("Time", time(circumstances.at)),
        ],
    }
}
