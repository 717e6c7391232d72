//! A subscription as it is shown.

use chrono::{DateTime, Utc};
use config::Config;
use domain::notification::RetryPlan;
use domain::subscription::SubscriptionState;
use serde::Serialize;
use store::webhook::SubscriptionView;
use utoipa::ToSchema;
use uuid::Uuid;

/// A subscription.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Subscription)]
pub(crate) struct SubscriptionDocument {
    /// Its identifier.
    #[schema(example = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")]
    pub(crate) id: Uuid,
    /// Where notifications are sent.
    #[schema(example = "https://reseller.example/hooks/domains")]
    pub(crate) url: String,
    /// Which events it gets: event types, prefixes such as domain.*, or * for all.
    #[schema(example = json!(["domain.*", "contact.updated"]))]
    pub(crate) event_types: Vec<String>,
    /// Who is told about trouble and changes of state.
    #[schema(example = "ops@reseller.example")]
    pub(crate) email: String,
    /// When that address was confirmed; null while it gets nothing but the code.
    pub(crate) email_confirmed_at: Option<DateTime<Utc>>,
    /// The reseller's own words.
    pub(crate) description: String,
    /// Where it stands.
    pub(crate) state: SubscriptionState,
    /// Why it stands there: CREATED, VERIFIED, BY_RESELLER, VERIFICATION_REQUESTED, ENDPOINT_CHANGED, FAILING, RECOVERED,
    /// REDIRECTED (it answered 3xx) or GONE (it answered 410).
    #[schema(example = "VERIFIED")]
    pub(crate) state_reason: &'static str,
    /// Since when.
    pub(crate) state_changed_at: DateTime<Utc>,
    /// When the reseller paused it; null when it is not paused. Events of a paused subscription wait.
    pub(crate) paused_at: Option<DateTime<Utc>>,
    /// When the operators of Postrider paused it; null when they did not. Its events wait until they let it go on, which
    /// resuming it does not do.
    pub(crate) held_at: Option<DateTime<Utc>>,
    /// The first failed attempt since the last success; null when all is well.
    pub(crate) failing_since: Option<DateTime<Utc>>,
    /// How its endpoint was verified, or why it is not.
    pub(crate) verification: VerificationDocument,
    /// How long the endpoint may take to answer, in milliseconds.
    #[schema(example = 10_000)]
    pub(crate) timeout_millis: u64,
    /// How many notifications it gets in a day; further ones wait for the next.
    #[schema(example = 1_000_000)]
    pub(crate) daily_quota: u32,
    /// How many attempts are made in a second; null: there is no limit.
    pub(crate) requests_per_second: Option<u32>,
    /// Whether what an outage of the endpoint gives up is sent again by itself once it answers.
    pub(crate) resend_after_outage: bool,
    /// For how long what failed is tried again: SHORT, or DAY, 8 retries within 24 hours.
    pub(crate) retry_plan: RetryPlan,
    /// Whether what the endpoint answers with 400 to 499 is tried again as well, save 410.
    pub(crate) retry_client_errors: bool,
    /// When it was made.
    pub(crate) created_at: DateTime<Utc>,
    /// When it was last changed.
    pub(crate) updated_at: DateTime<Utc>,
}

/// How an endpoint was verified, or why it is not.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Verification)]
pub(crate) struct VerificationDocument {
    /// When the present endpoint answered its challenge.
    pub(crate) verified_at: Option<DateTime<Utc>>,
    /// When it is challenged next.
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    /// How often it was challenged in vain.
    pub(crate) failed_attempts: u32,
    /// What came of the last challenge.
    pub(crate) error: Option<String>,
}

impl SubscriptionDocument {
    pub(crate) fn of(view: SubscriptionView, config: &Config) -> Self {
        let defaults = &config.reseller.subscription;
        let timeout = config.reseller.delivery.timeout.as_millis();
        Self {
            id: view.id,
            url: view.url,
            event_types: view.event_types,
            email: view.email,
            email_confirmed_at: view.email_confirmed_at,
            description: view.description,
            state: view.state,
            state_reason: view.state_reason.as_str(),
            state_changed_at: view.state_changed_at,
            paused_at: view.paused_at,
            held_at: view.held_at,
            failing_since: view.failing_since,
            verification: VerificationDocument {
                verified_at: view.verified_at,
                next_attempt_at: view.verification_due_at,
                failed_attempts: view.verification_attempts,
                error: view.verification_error,
            },
            timeout_millis: view
                .timeout_millis
                .map_or(u64::try_from(timeout).unwrap_or(u64::MAX), u64::from),
            daily_quota: view.daily_quota.unwrap_or(defaults.daily_quota),
            requests_per_second: view.requests_per_second.or(defaults.requests_per_second),
            resend_after_outage: view
                .resend_after_outage
                .unwrap_or(config.reseller.replay.after_outage),
            retry_plan: view.retry_plan,
            retry_client_errors: view.retry_client_errors,
            created_at: view.created_at,
            updated_at: view.updated_at,
        }
    }
}
