//! R5, those that are selected: sending them again at once.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::counted::of;
use http_api::{FieldProblem, Problem};
use pages::{Fields, done, not_done};
use uuid::Uuid;

use super::Route;
use crate::app::App;
use crate::notifications::{self, SentAgain};
use crate::request::Resender;

/// Most notifications that are sent again at once.
const RESENT_MAX: usize = 500;
/// Most that are named of those that are not, for each reason.
const NAMED_MAX: usize = 3;

pub(super) fn routes() -> Vec<Route> {
    vec![super::act("/app/deliveries/resend", resend)]
}

/// Sends what was selected again, as `POST /notifications/{id}/resend` does each, and names what is not.
async fn resend(
    State(app): State<Arc<App>>,
    resender: Resender,
    fields: Fields,
) -> Result<Response, Problem> {
    let wrong = |detail: String| Err(Problem::fields(vec![FieldProblem::new("id", detail)]));
    let ids: Option<Vec<Uuid>> = fields.all("id").iter().map(|id| id.parse().ok()).collect();
    let Some(mut ids) = ids.filter(|ids| !ids.is_empty()) else {
        return wrong("select the notifications that are to be sent again".to_owned());
    };
    ids.sort_unstable();
    ids.dedup();
    if ids.len() > RESENT_MAX {
        return wrong(format!("select at most {RESENT_MAX} notifications"));
    }
    let sent = notifications::resend_each(&app, &resender, &ids).await?;
    let back = fields.get("back").filter(|back| super::is_ours(back));
    let leads_on = if sent.count == 0 { not_done } else { done };
    Ok(leads_on(back.unwrap_or("/app/deliveries"), &said_of(&sent)))
}

/// How many are sent again, and which are not and why.
fn said_of(sent: &SentAgain) -> String {
    if sent.refused.is_empty() {
        let notifications = of(sent.count, "notification is", "notifications are");
        return format!("{notifications} sent again.");
    }
    let refused: usize = sent.refused.values().map(Vec::len).sum();
    let mut said = format!(
        "{} sent again, {} not.",
        of(sent.count, "is", "are"),
        of(refused as u64, "is", "are")
    );
    for (reason, names) in &sent.refused {
        let named = names[..names.len().min(NAMED_MAX)].join(", ");
        let others = match names.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        said.push_str(&format!(" {named}{others}: {reason}."));
    }
    said
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_not_sent_again_is_named_by_reason_and_a_long_list_is_cut() {
        let names = |count: usize| -> Vec<String> {
            let named = (0..count).map(|at| format!("order-{at} (domain.created)"));
            named.collect()
        };
        let refused = [
            ("it is final".to_owned(), names(5)),
            ("it waits".to_owned(), names(1)),
        ];
        let sent = SentAgain {
            count: 2,
            refused: refused.into(),
        };
        assert_eq!(
            said_of(&sent),
            "2 are sent again, 6 are not. order-0 (domain.created), order-1 (domain.created), order-2 (domain.created) and 2 more: it is \
             final. order-0 (domain.created): it waits."
        );
        let all = SentAgain {
            count: 1,
            refused: BTreeMap::new(),
        };
        assert_eq!(said_of(&all), "1 notification is sent again.");
    }
}
