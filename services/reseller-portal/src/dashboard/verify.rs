//! R3: the secret of a new subscription, and the challenge to its endpoint.

use std::sync::{Arc, LazyLock};

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::subscription::SubscriptionState;
use engine::webhook::told;
use http::HeaderMap;
use http_api::{Id, Problem};
use pages::{Page, done};

use super::frame::Frame;
use super::{Route, replays, words};
use crate::app::App;
use crate::request::{Manager, Reseller};
use crate::subscriptions::create::CreatedDocument;
use crate::subscriptions::{self, SubscriptionDocument};

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page("/app/s/{id}/verify", page),
        super::act("/app/s/{id}/verify", challenge),
        super::act("/app/s/{id}/test", test),
    ]
}

/// Endpoints that verify, answer the challenge, and take each notification once; they are tested where they stand.
static SAMPLES: LazyLock<[(&str, &str); 4]> = LazyLock::new(|| {
    [
        (
            "Python",
            include_str!("../../../../sdks/examples/python/minimal.py"),
        ),
        ("Go", include_str!("../../../../sdks/examples/go/minimal/main.go")),
        (
            "C#",
            include_str!("../../../../sdks/examples/csharp/Minimal/Program.cs"),
        ),
        (
            "Rust",
            part_of(include_str!("../../../../libs/signing/tests/it/sample.rs")),
        ),
    ]
});

/// What stands between the marks of a file that is a test.
fn part_of(file: &'static str) -> &'static str {
    let after = file.split_once("// [answer]\n").map_or(file, |(_, rest)| rest);
    after
        .split_once("// [/answer]")
        .map_or(after, |(part, _)| part)
        .trim_end()
}

#[derive(Template)]
#[template(path = "verify.html")]
struct Verify {
    frame: Frame,
    subscription: SubscriptionDocument,
    /// The secret, in the answer that made it.
    secret: Option<String>,
    /// Where what came before it was verified is sent.
    replay: Option<String>,
}

impl Verify {
    fn heading(&self) -> String {
        words::host(&self.subscription.url)
    }

    fn samples(&self) -> &'static [(&'static str, &'static str)] {
        SAMPLES.as_slice()
    }

    fn is_verified(&self) -> bool {
        self.subscription.state.receives()
    }

    fn is_deactivated(&self) -> bool {
        self.subscription.state == SubscriptionState::Deactivated
    }

    fn is_paused(&self) -> bool {
        self.subscription.paused_at.is_some() || self.subscription.held_at.is_some()
    }

    /// Whether the page follows what happens. Not while it shows the secret, which is in no other answer.
    fn is_live(&self) -> bool {
        self.secret.is_none()
            && self.subscription.state == SubscriptionState::PendingVerification
            && self.subscription.verification.next_attempt_at.is_some()
    }

    /// What is likely to mend it.
    fn likely(&self) -> &'static str {
        match self.subscription.verification.error.as_deref() {
            Some(told::NO_ANSWER) => {
                "Check that its name has an address that the internet reaches, that it listens and the firewall lets our addresses pass, that its \
                 certificate is valid for the name and is sent with the certificates that it was signed with, and that it answers at once and does \
                 the work afterwards. \"Check the endpoint\", where a subscription is made, says how far a request gets."
            }
            Some(told::ANOTHER_STATUS) => {
                "Check that it knows the secret of this subscription, that nothing in front of it asks for a password, and that the URL is the one \
                 to which a redirect would lead: redirects are not followed."
            }
            _ => {
                "It has to answer 200 with the text of data.challenge, and nothing else, as the body or as {\"challenge\": …}."
            }
        }
    }
}

/// The page of a subscription that was just made.
pub(super) fn made(frame: Frame, created: CreatedDocument) -> Response {
    let page = Verify {
        frame,
        subscription: created.subscription,
        secret: Some(created.secret.secret),
        replay: None,
    };
    Page(page).into_response()
}

async fn page(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    id: Id,
) -> Result<impl IntoResponse, Problem> {
    let find = subscriptions::find(State(Arc::clone(&app)), reseller.clone(), id);
    let subscription = find.await?.1.0;
    let replay = match subscription.state.receives() {
        true => replays::of_what_was_missed(&app, &reseller, &frame, subscription.id).await?,
        false => None,
    };
    Ok(Page(Verify {
        frame,
        subscription,
        secret: None,
        replay,
    }))
}

async fn challenge(State(app): State<Arc<App>>, manager: Manager, Id(id): Id) -> Result<Response, Problem> {
    let _ = subscriptions::verify(State(app), manager, Id(id)).await?;
    let said = "The endpoint is challenged now. This page shows what comes of it.";
    Ok(done(&format!("/app/s/{id}/verify"), said))
}

async fn test(
    State(app): State<Arc<App>>,
    manager: Manager,
    id: Id,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (_, _, sent) = subscriptions::send_test(State(app), manager, id, headers, None).await?;
    let address = format!("/app/n/{}", sent.0.notification_id);
    Ok(done(&address, "A test event is on its way. It uses no quota."))
}
