//! Names that a column is kept to are those that its type knows: what one of them permits, the other reads.

use std::collections::BTreeSet;

use domain::capability::Capability;
use domain::dead_letter_job::{JobAction, JobPause, JobStatus};
use domain::email::{EmailKind, EmailStatus};
use domain::event::UnknownFields;
use domain::key::Role;
use domain::notification::OutageClass;
use domain::push::{AttemptStatus, ErrorType, Platform, PushStatus};
use domain::reason::{NotificationReason, PushReason, StateReason};
use domain::subscription::{QuotaRequestStatus, RecoveryEnd, ReplayStatus, SubscriptionState};
use sqlx::PgPool;
use store::{DeadLetterReason, DeadLetterState};

/// The names that the constraint of a table holds, as the database tells it.
async fn permitted(pool: &PgPool, table: &str, constraint: &str) -> BTreeSet<String> {
    let definition: String = sqlx::query_scalar(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = $1::regclass AND conname = $2",
    )
    .bind(table)
    .bind(constraint)
    .fetch_one(pool)
    .await
    .unwrap_or_else(|error| panic!("{table}.{constraint}: {error}"));
    let quoted = definition.split('\'').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

#[testkit::database_test]
async fn a_column_permits_the_names_that_its_type_knows_and_no_others(pool: PgPool) {
    macro_rules! names {
        ($($table:literal $constraint:literal: $name:ident,)*) => {$(
            let known: BTreeSet<String> = $name::ALL.into_iter().map(|one| one.to_string()).collect();
            assert_eq!(permitted(&pool, $table, $constraint).await, known, "{}.{}", $table, $constraint);
        )*};
    }
    names! {
        "push_notifications" "status_is_known": PushStatus,
        "push_notifications" "platform_is_known": Platform,
        "push_notifications" "reason_is_known": PushReason,
        "send_attempts" "status_is_known": AttemptStatus,
        "send_attempts" "error_type_is_known": ErrorType,
        "notifications" "status_is_known": PushStatus,
        "delivery_attempts" "status_is_known": AttemptStatus,
        "subscriptions" "state_is_known": SubscriptionState,
        "subscriptions" "state_reason_is_known": StateReason,
        "subscription_sidelines" "outage_class_is_known": OutageClass,
        "dead_letters" "state_is_known": DeadLetterState,
        "dead_letters" "reason_is_known": DeadLetterReason,
        "dead_letter_jobs" "action_is_known": JobAction,
        "dead_letter_jobs" "status_is_known": JobStatus,
        "dead_letter_jobs" "ended_because_is_known": RecoveryEnd,
        "dead_letter_jobs" "paused_because_is_known": JobPause,
        "quota_requests" "status_is_known": QuotaRequestStatus,
        "replays" "status_is_known": ReplayStatus,
        "emails" "kind_is_known": EmailKind,
        "emails" "status_is_known": EmailStatus,
        "event_types" "unknown_fields_is_known": UnknownFields,
        "api_keys" "roles_are_known": Role,
        "portal_links" "capabilities_are_known": Capability,
        "portal_visits" "capabilities_are_known": Capability,
    }
}

#[testkit::database_test]
async fn a_notification_may_have_every_reason_and_the_fingerprint_of_a_failure(pool: PgPool) {
    let mut permitted = permitted(&pool, "notifications", "reason_is_known").await;
    assert!(permitted.remove("delivery/"), "{permitted:?}");
    let known: BTreeSet<String> = NotificationReason::all().map(|one| one.to_string()).collect();
    assert_eq!(permitted, known);
}
