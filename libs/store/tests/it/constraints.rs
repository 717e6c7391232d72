//! What the schema itself refuses, no matter which process writes to it.

use domain::push::PushState;
use sqlx::{AssertSqlSafe, PgPool};
use testkit::push_factory::PushRow;

use crate::scene::everything;

async fn broken_constraint(pool: &PgPool, sql: String) -> Option<String> {
    match sqlx::raw_sql(AssertSqlSafe(sql)).execute(pool).await {
        Err(sqlx::Error::Database(error)) => error.constraint().map(str::to_owned),
        other => panic!("a constraint should have refused it: {other:?}"),
    }
}

#[testkit::database_test]
async fn a_push_cannot_contradict_itself(pool: PgPool) {
    let cases = [
        (PushState::Pending, "status = 'LOST'", "status_is_known"),
        (PushState::Pending, "platform = 'BEOS'", "platform_is_known"),
        (PushState::Pending, "attempts = -1", "attempts_are_counted"),
        (PushState::Pending, "leased_until = now()", "in_memory_is_leased"),
        (PushState::Queued, "leased_until = NULL", "in_memory_is_leased"),
        (
            PushState::Pending,
            "lease_token = gen_random_uuid(), attempts = 1",
            "only_in_memory_is_claimed",
        ),
        (
            PushState::Queued,
            "lease_token = gen_random_uuid()",
            "a_claim_is_an_attempt",
        ),
        (PushState::Retry, "next_attempt_at = NULL", "waiting_has_a_time"),
        (PushState::Sent, "next_attempt_at = now()", "waiting_has_a_time"),
        (
            PushState::Scheduled,
            "cron_expression = NULL",
            "scheduled_has_a_window",
        ),
        (PushState::Sent, "finished_at = NULL", "terminal_has_an_end"),
        (PushState::Queued, "finished_at = now()", "terminal_has_an_end"),
    ];
    for (state, change, constraint) in cases {
        let push = PushRow::in_state(state).make(&pool).await;
        let sql = format!("UPDATE push_notifications SET {change} WHERE id = '{}'", push.id);
        assert_eq!(
            broken_constraint(&pool, sql).await.as_deref(),
            Some(constraint),
            "{change}"
        );
    }
}

#[testkit::database_test]
async fn an_attempt_cannot_contradict_itself(pool: PgPool) {
    let push = PushRow::in_state(PushState::Sending).make(&pool).await;
    let cases = [
        ("number = 0", "number_counts_from_one"),
        ("status = 'MAYBE'", "status_is_known"),
        ("status = 'ERROR'", "an_error_has_a_type"),
        ("error_type = 'SWRVE'", "an_error_has_a_type"),
        ("status = 'ERROR', error_type = 'FATE'", "error_type_is_known"),
    ];
    for (change, constraint) in cases {
        let sql = format!(
            "UPDATE send_attempts SET {change} WHERE push_notification_id = '{}'",
            push.id
        );
        assert_eq!(
            broken_constraint(&pool, sql).await.as_deref(),
            Some(constraint),
            "{change}"
        );
    }
}

#[testkit::database_test]
async fn a_dead_letter_and_a_key_cannot_contradict_themselves(pool: PgPool) {
    let letter = |lane, reason| {
        format!(
            "INSERT INTO dead_letters (lane, reason, fingerprint, detail) VALUES ('{lane}', '{reason}', 'f', 'd')"
        )
    };
    let key = |digest, roles| {
        format!("INSERT INTO api_keys VALUES (gen_random_uuid(), 'n', {digest}, {roles}, now())")
    };
    let digest = "sha256('x')";
    for (sql, constraint) in [
        (letter("fax", "REJECTED"), "lane_is_known"),
        (letter("push", "BORED"), "reason_is_known"),
        (letter("push", "FAILED"), "a_failure_names_what_failed"),
        (key("'\\x00'", "'{ingest}'"), "digest_is_sha256"),
        (key(digest, "'{root}'"), "roles_are_known"),
        (key(digest, "'{}'"), "roles_are_given"),
        (key(digest, "'{reseller}'"), "a_reseller_key_names_its_reseller"),
    ] {
        assert_eq!(
            broken_constraint(&pool, sql.clone()).await.as_deref(),
            Some(constraint),
            "{sql}"
        );
    }
}

#[testkit::database_test]
async fn a_link_to_a_dashboard_cannot_say_what_is_unknown(pool: PgPool) {
    sqlx::query("INSERT INTO api_keys VALUES ('01a1fd84-191a-7187-8c92-644d9a28fa8b', 'n', sha256('k'), '{embedder}', now())")
        .execute(&pool)
        .await
        .unwrap();
    let link = |digest, capabilities, minutes, theme| {
        format!(
            "INSERT INTO portal_links (id, digest, reseller_id, person_id, person_name, capabilities, api_key_id, created_at, expires_at, \
                 visit_minutes, landing, theme) \
             VALUES (gen_random_uuid(), {digest}, 'acme', 'p', 'p', '{capabilities}', '01a1fd84-191a-7187-8c92-644d9a28fa8b', now(), now(), \
                 {minutes}, '/app', {theme})"
        )
    };
    let visit = |digest, capabilities, theme| {
        format!(
            "INSERT INTO portal_visits (id, digest, reseller_id, person_id, person_name, capabilities, api_key_id, began_at, last_seen_at, \
                 ends_at, landing, theme) \
             VALUES (gen_random_uuid(), {digest}, 'acme', 'p', 'p', '{capabilities}', '01a1fd84-191a-7187-8c92-644d9a28fa8b', now(), now(), \
                 now(), '/app', {theme})"
        )
    };
    let digest = "sha256('x')";
    for (sql, constraint) in [
        (link("'\\x00'", "{bodies}", 1, "NULL"), "a_digest_has_32_bytes"),
        (link(digest, "{everything}", 1, "NULL"), "capabilities_are_known"),
        (link(digest, "{}", 0, "NULL"), "a_visit_lasts_a_while"),
        (link(digest, "{}", 1, "'pink'"), "theme_is_known"),
        (
            link(digest, "{}", 1, "NULL").replace("'01a1fd84-191a-7187-8c92-644d9a28fa8b'", "NULL"),
            "a_key_or_an_operator_made_it",
        ),
        (visit("'\\x00'", "{bodies}", "NULL"), "a_digest_has_32_bytes"),
        (visit(digest, "{everything}", "NULL"), "capabilities_are_known"),
        (visit(digest, "{}", "'pink'"), "theme_is_known"),
        (
            visit(digest, "{}", "NULL").replace("'01a1fd84-191a-7187-8c92-644d9a28fa8b'", "NULL"),
            "a_key_or_an_operator_made_it",
        ),
    ] {
        assert_eq!(
            broken_constraint(&pool, sql.clone()).await.as_deref(),
            Some(constraint),
            "{sql}"
        );
    }
}

#[testkit::database_test]
async fn the_factory_makes_every_state_with_its_history(pool: PgPool) {
    for state in PushState::ALL {
        PushRow::in_state(state).attempts(2).make(&pool).await;
    }
    let made = everything(&pool).await;
    assert_eq!(made["pushes"].as_array().map(Vec::len), Some(9));
    assert_eq!(made["attempts"].as_array().map(Vec::len), Some(18));
    assert_eq!(made["dead_letters"].as_array().map(Vec::len), Some(2));
}
