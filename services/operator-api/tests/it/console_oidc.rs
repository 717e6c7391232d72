//! Signing in to the console with a provider: who gets in, as what, what is dangerous, and what a key is good for beside it.

mod dangerous;
mod provider_away;
mod roles;
mod sign_in;

use config::KeyLogin;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::console::{Answer, Browser, holds};
use crate::provider::Provider;
use crate::rig::Rig;

const JOBS: &str = "/console/jobs";

async fn rig_with(pool: PgPool, key_login: Option<KeyLogin>) -> (Rig, Provider) {
    let provider = Provider::start().await;
    let rig = Rig::with(pool, |config| {
        provider.configure(config);
        config.operator.key_login_setting = key_login;
    })
    .await;
    provider.change(|mood| mood.clock = Some(rig.clock.clone()));
    (rig, provider)
}

/// Begins a sign-in. Returns the path of the console that the provider sends the browser back to.
async fn begin(browser: &Browser<'_>, provider: &Provider, start: &str) -> String {
    let answer = browser.get(start).await;
    assert_eq!(answer.status, 303, "{answer:?}");
    provider.visit(answer.header("location")).await
}

async fn sign_in(browser: &Browser<'_>, provider: &Provider) -> Answer {
    let back = begin(browser, provider, "/console/sign-in/start?next=/console/jobs").await;
    browser.get(&back).await
}

async fn signed_in<'r>(rig: &'r Rig, provider: &Provider, group: &str) -> Browser<'r> {
    provider.change(|mood| mood.claims["groups"] = json!([group]));
    let browser = Browser::new(rig);
    let answer = sign_in(&browser, provider).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, JOBS),
        "{answer:?}"
    );
    browser
}

async fn entries(rig: &Rig, action: &str) -> Vec<Value> {
    rig.all(&format!("/audit?action={action}"), 10).await
}

/// A sign-in that is refused, with what its page says.
async fn is_refused(rig: &Rig, provider: &Provider, status: u16, parts: &[&str]) {
    let browser = Browser::new(rig);
    let answer = sign_in(&browser, provider).await;
    assert_eq!(answer.status, status, "{answer:?}");
    holds(&answer.html, parts);
    assert_eq!(browser.get(JOBS).await.status, 303, "there is no visit");
}
