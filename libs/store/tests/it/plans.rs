//! The plans of all statements, as PostgreSQL makes them for the store's own connections: no statement may read a table
//! that grows from one end to the other, whether the planner knows much about the table or nothing.

use std::path::Path;

use serde_json::Value;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool};
use store::Settings;

use crate::dead_letter_scene::make_dead_letters;
use crate::scene::LONG;

const ROWS: i64 = 20_000;
const GROWING: [&str; 8] = [
    "push_notifications",
    "send_attempts",
    "idempotency_keys",
    "dead_letters",
    "events",
    "notifications",
    "delivery_attempts",
    "event_keys",
];

/// What a statement says that reads all that waits: the partial indexes of that from end to end, and nothing else.
const READS_ALL_THAT_WAITS: &str = "-- Reads all that waits, while no service runs.";

/// Every statement that the store was compiled with about what these words are part of, and how many parameters it takes.
fn statements(words: &[&str]) -> Vec<(String, usize)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.sqlx");
    let read = |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let descriptions = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| read(&entry.unwrap().path()));
    descriptions
        .map(|description| {
            let parameters = description["describe"]["parameters"]["Left"]
                .as_array()
                .map_or(0, Vec::len);
            (description["query"].as_str().unwrap().to_owned(), parameters)
        })
        .filter(|(query, _)| words.iter().any(|word| query.contains(word)))
        .collect()
}

async fn run(connection: &mut PgConnection, sql: String) {
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(connection)
        .await
        .unwrap();
}

/// The plan that a connection caches, which cannot know the parameters.
async fn plan(connection: &mut PgConnection, query: &str, parameters: usize) -> Value {
    run(connection, format!("PREPARE statement AS {query}")).await;
    let arguments = vec!["NULL"; parameters].join(", ");
    let arguments = if parameters == 0 {
        arguments
    } else {
        format!("({arguments})")
    };
    let explain = AssertSqlSafe(format!("EXPLAIN (FORMAT JSON) EXECUTE statement {arguments}"));
    let plan: Value = sqlx::raw_sql(explain)
        .fetch_one(&mut *connection)
        .await
        .map(|row| sqlx::Row::get_unchecked::<sqlx::types::Json<Value>, _>(&row, 0).0)
        .unwrap();
    run(connection, "DEALLOCATE statement".to_owned()).await;
    plan[0]["Plan"].clone()
}

/// What is wrong with a plan, down to its leaves. Under a LIMIT the order must come from an index: sorting reads all that
/// the limit was to leave alone. A window function does so in any case: there the limits are those of its input.
fn faults(node: &Value, limited: bool) -> Vec<String> {
    let text = |name: &str| node[name].as_str().unwrap_or_default();
    let (kind, table, index) = (text("Node Type"), text("Relation Name"), text("Index Name"));
    let growing = GROWING.iter().any(|name| table.starts_with(name));
    let whole_table = growing && matches!(kind, "Seq Scan" | "Bitmap Heap Scan");
    // A partial index is as long as what waits: read for its head it is cheap, joined row by row it is not.
    let whole_index = growing
        && !index.is_empty()
        && node["Index Cond"].is_null()
        && (index.ends_with("_pkey") || !limited);
    let children = || node["Plans"].as_array().into_iter().flatten();
    let joins_whole_tables = matches!(kind, "Hash Join" | "Merge Join") && !children().all(reads_no_table);
    let whole_input = joins_whole_tables || limited && kind == "Sort";
    // What a statement is given, gone through for each row of a table: each pair of them is then looked for in a growing one.
    let (outer, inner) = (&node["Plans"][0], &node["Plans"][1]);
    let each_with_each = kind == "Nested Loop"
        && node["Join Filter"].is_null()
        && !outer["Relation Name"].is_null()
        && inner["Node Type"] == "Function Scan"
        && inner["Alias"] == "i";
    let window = kind == "WindowAgg" || children().any(|child| child["Node Type"] == "WindowAgg");
    // What lies below limits of its own on every path has been bounded before it is sorted.
    let merged = kind == "Sort" && children().all(bounded);
    let whole_input = whole_input && !(window && kind == "Sort") && !merged;
    let limited = (limited || kind == "Limit") && kind != "WindowAgg";
    let children = children();
    let mut found: Vec<String> = children.flat_map(|child| faults(child, limited)).collect();
    if whole_table || whole_index || whole_input || each_with_each {
        found.push(format!("{kind} {table} {index}"));
    }
    found
}

/// Whether there is nothing below a node but what the statement has found before.
fn reads_no_table(node: &Value) -> bool {
    let children = node["Plans"].as_array();
    node["Relation Name"].is_null() && children.into_iter().flatten().all(reads_no_table)
}

/// Whether every growing table below a node is read under a limit.
fn bounded(node: &Value) -> bool {
    let table = node["Relation Name"].as_str().unwrap_or_default();
    let growing = GROWING.iter().any(|name| table.starts_with(name));
    let children = node["Plans"].as_array();
    node["Node Type"] == "Limit" || !growing && children.into_iter().flatten().all(bounded)
}

async fn fill(pool: &PgPool) {
    let states =
        "ARRAY['PENDING', 'PENDING', 'PENDING', 'PENDING', 'SCHEDULED', 'RETRY', 'IN_MEMORY', 'SENT']";
    let pushes = format!(
        "INSERT INTO push_notifications (id, status, platform, push_key, message, cron_expression, attempts,
                                         next_attempt_at, leased_until, created_at, finished_at)
         SELECT (left(first_id_of_month(date_trunc('month', now())::date)::text, 9) || right(gen_random_uuid()::text, 27))::uuid,
                status, 'IOS', 'device', 'Hello client!', '* * * * * ?', 1,
                CASE WHEN status IN ('SCHEDULED', 'RETRY') THEN now() + (n % 1000 - 500) * interval '1 s' END,
                CASE WHEN status = 'IN_MEMORY' THEN now() + (n % 1000 - 100) * interval '1 s' END,
                now(), CASE WHEN status = 'SENT' THEN now() END
         FROM (SELECT n, ({states})[1 + n % 8] AS status FROM generate_series(1, {ROWS}) AS n) AS row"
    );
    for statement in [
        pushes,
        "INSERT INTO send_attempts (push_notification_id, number, status) SELECT id, 1, 'OK' FROM push_notifications"
            .to_owned(),
        format!(
            "INSERT INTO idempotency_keys
             SELECT gen_random_uuid(), 'key-' || n, gen_random_uuid(), '\\x01', now() - n * interval '1 s'
             FROM generate_series(1, {ROWS}) AS n"
        ),
    ] {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(pool).await.unwrap();
    }
}

/// Notifications of a hundred subscriptions in all statuses, most of them at their end.
async fn fill_reseller_lane(pool: &PgPool) {
    let states = "ARRAY['PENDING', 'SCHEDULED', 'RETRY', 'IN_MEMORY', 'SENT', 'SENT', 'SENT', 'SENT']";
    let subscriptions = "INSERT INTO subscriptions (id, reseller_id, url, event_types, email, state, state_reason,
                                                    state_changed_at, created_at, updated_at)
         SELECT gen_random_uuid(), 'reseller-' || n % 20, 'https://acme.example', ARRAY['*'], 'ops@acme.example',
                'ACTIVE', 'VERIFIED', now(), now(), now()
         FROM generate_series(1, 100) AS n";
    let events = format!(
        "INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at)
         SELECT (left(first_id_of_month(date_trunc('month', now())::date)::text, 9) || right(gen_random_uuid()::text, 27))::uuid,
                'event-' || n, 'reseller-' || n % 20, 'domain.created', '{{}}', now(), now()
         FROM generate_series(1, {ROWS}) AS n"
    );
    let notifications = format!(
        "INSERT INTO notifications (id, event, subscription_id, reseller_id, event_type, status, reason, attempts,
                                    next_attempt_at, leased_until, payload_bytes, created_at, updated_at, finished_at)
         SELECT notification_id(event, subscription), event, subscription, reseller_id, 'domain.created', status, 'QUOTA',
                CASE WHEN status = 'PENDING' THEN 0 ELSE 1 END,
                CASE WHEN status IN ('SCHEDULED', 'RETRY') THEN now() + (n % 1000 - 500) * interval '1 s' END,
                CASE WHEN status = 'IN_MEMORY' THEN now() + (n % 1000 - 100) * interval '1 s' END,
                2, now(), now(), CASE WHEN status = 'SENT' THEN now() END
         FROM (SELECT n, e.id AS event, s.id AS subscription, e.reseller_id, ({states})[1 + n % 8] AS status
               FROM (SELECT *, row_number() OVER () AS n FROM events) AS e
               JOIN subscriptions s ON s.reseller_id = e.reseller_id) AS row"
    );
    let attempts = "INSERT INTO delivery_attempts (notification_id, number, status, started_at, url)
         SELECT id, 1, 'OK', now(), 'https://acme.example' FROM notifications";
    let keys = format!(
        "INSERT INTO event_keys
         SELECT 'reseller/' || n % 20, 'key-' || n, gen_random_uuid(), '\\x01', now() - n * interval '1 s'
         FROM generate_series(1, {ROWS}) AS n"
    );
    for statement in [subscriptions, &events, &notifications, attempts, &keys] {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
            .execute(pool)
            .await
            .unwrap();
    }
}

/// A connection of the store's own.
async fn connect(pool: &PgPool) -> PgConnection {
    let settings = Settings {
        url: pool.connect_options().to_url_lossy().to_string(),
        max_connections: 1,
        lease_connections: 1,
        acquire_timeout: LONG,
        application_name: "plans".to_owned(),
        line_terms: store::webhook::LineTerms::default(),
    };
    PgConnection::connect_with(&settings.connect_options().unwrap()[0])
        .await
        .unwrap()
}

/// The plan of the only statement with these words.
async fn plan_of(pool: &PgPool, words: &str) -> Value {
    let found = statements(&[words]);
    let [(query, parameters)] = found.as_slice() else {
        panic!("{found:?}")
    };
    let mut connection = connect(pool).await;
    let plan = plan(&mut connection, query, *parameters).await;
    connection.close().await.unwrap();
    plan
}

/// Of the statements about growing tables those that say these words.
async fn assert_plans(pool: &PgPool, words: &str, when: &str) {
    let mut connection = connect(pool).await;
    let mut statements = statements(&GROWING);
    statements.retain(|(query, _)| query.contains(words));
    assert!(
        statements.len() >= 15,
        "only {} statements were found",
        statements.len()
    );
    let mut faulty = Vec::new();
    for (query, parameters) in statements {
        let plan = plan(&mut connection, &query, parameters).await;
        // As one that is limited, it must not sort, and reads no index that is as long as the table.
        let faults = faults(&plan, query.contains(READS_ALL_THAT_WAITS));
        if !faults.is_empty() {
            faulty.push(format!("{faults:?} in the plan of {query}\n{plan:#}"));
        }
    }
    connection.close().await.unwrap();
    assert!(faulty.is_empty(), "{when}: {}", faulty.join("\n\n"));
}

async fn analyze(pool: &PgPool) {
    let months = "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind = 'r' AND c.reltuples <> 0
                  AND pg_relation_size(c.oid) > 0 AND c.relnamespace = 'public'::regnamespace";
    let tables: Vec<String> = sqlx::query_scalar(months).fetch_all(pool).await.unwrap();
    for table in tables {
        sqlx::raw_sql(AssertSqlSafe(format!("ANALYZE {table}")))
            .execute(pool)
            .await
            .unwrap();
    }
}

#[testkit::database_test]
async fn no_statement_reads_a_growing_table_from_end_to_end(pool: PgPool) {
    assert_plans(&pool, "", "with empty tables").await;
    fill(&pool).await;
    fill_reseller_lane(&pool).await;
    make_dead_letters(&pool, 20_000).await;
    assert_plans(&pool, "", "with full tables that were never analysed").await;
    analyze(&pool).await;
    assert_plans(&pool, "", "with full tables").await;
    // As nearly always when the server does so by itself.
    let all_ended = "UPDATE push_notifications SET status = 'SENT', next_attempt_at = NULL, leased_until = NULL, lease_token = NULL,
                                                   finished_at = now();
                     UPDATE notifications SET status = 'SENT', next_attempt_at = NULL, leased_until = NULL, lease_token = NULL,
                                              finished_at = now()";
    sqlx::raw_sql(all_ended).execute(&pool).await.unwrap();
    analyze(&pool).await;
    assert_plans(
        &pool,
        "UNNEST($1::uuid[])",
        "with tables that were analysed while nothing waited",
    )
    .await;
}

#[testkit::database_test]
async fn what_was_done_to_a_subject_is_found_by_its_name(pool: PgPool) {
    let entries = format!(
        "INSERT INTO audit_log (id, at, actor, action, subject)
         SELECT gen_random_uuid(), now(), 'ann', 'push.cancel', 'push/' || n FROM generate_series(1, {ROWS}) AS n;
         ANALYZE audit_log"
    );
    sqlx::raw_sql(AssertSqlSafe(entries))
        .execute(&pool)
        .await
        .unwrap();
    let plan = plan_of(&pool, "WHERE subject = $3").await.to_string();
    assert!(plan.contains("audit_log_subject"), "{plan}");
    assert!(!plan.contains("audit_log_pkey"), "{plan}");
}

#[testkit::database_test]
async fn what_was_done_to_a_subject_around_a_time_is_found_by_both(pool: PgPool) {
    // Half of the log is about one subject.
    let entries = format!(
        "INSERT INTO audit_log (id, at, actor, action, subject)
         SELECT gen_random_uuid(), now(), 'ann', 'subscription.pause', 'subscription/' || CASE WHEN n % 2 = 0 THEN 0 ELSE n END
         FROM generate_series(1, {ROWS}) AS n;
         ANALYZE audit_log"
    );
    sqlx::raw_sql(AssertSqlSafe(entries))
        .execute(&pool)
        .await
        .unwrap();
    let plan = plan_of(&pool, "AS t(id, since, until)").await;
    let read = reading(&plan, "audit_log_subject").unwrap_or_else(|| panic!("{plan:#}"));
    let condition = read["Index Cond"].to_string();
    for bound in ["subject = ", "id >= "] {
        assert!(condition.contains(bound), "{plan:#}");
    }
}

/// The node of a plan that reads this index.
fn reading<'a>(node: &'a Value, index: &str) -> Option<&'a Value> {
    if node["Index Name"] == index {
        return Some(node);
    }
    let mut children = node["Plans"].as_array()?.iter();
    children.find_map(|child| reading(child, index))
}

#[testkit::database_test]
async fn what_was_done_to_several_resellers_is_not_looked_for_among_all_that_was_done_to_the_lane(
    pool: PgPool,
) {
    // Half of the log is about the lane, and little of that about several resellers.
    let entries = format!(
        "INSERT INTO audit_log (id, at, actor, action, subject, details)
         SELECT gen_random_uuid(), now(), 'ann (' || n || ')', 'notification.cancel-many',
                CASE WHEN n % 2 = 0 THEN 'lane/reseller' ELSE 'push/' || n END,
                CASE WHEN n % 1000 = 0 THEN '{{\"resellers\": {{\"acme\": 1}}}}' ELSE '{{}}' END::jsonb
         FROM generate_series(1, {ROWS}) AS n;
         ANALYZE audit_log"
    );
    sqlx::raw_sql(AssertSqlSafe(entries))
        .execute(&pool)
        .await
        .unwrap();
    let plan = plan_of(&pool, "e.details->'resellers' ? $1").await;
    for index in ["audit_log_of_resellers", "audit_log_subject", "audit_log_actor"] {
        // From the cursor on, and no further than the time that is asked for.
        let read = reading(&plan, index).map(|node| node["Index Cond"].to_string());
        assert!(
            read.as_ref()
                .is_some_and(|bounds| bounds.contains("id >=") && bounds.contains("id <")),
            "{index}: {plan:#}"
        );
    }
}

#[testkit::database_test]
async fn visits_that_go_on_are_not_looked_for_among_those_that_ended(pool: PgPool) {
    let visits = "INSERT INTO portal_visits (id, digest, reseller_id, person_id, person_name, capabilities, made_by_operator,
                                             began_at, last_seen_at, ends_at, landing)
                  SELECT gen_random_uuid(), sha256(n::text::bytea), 'acme', 'anna', 'Anna', '{}', 'ada', at, at, at + interval '1 hour', '/app'
                  FROM (SELECT n, now() - n * interval '1 minute' AS at FROM generate_series(1, 10000) AS n) AS row;
                  ANALYZE portal_visits";
    sqlx::raw_sql(visits).execute(&pool).await.unwrap();
    let plan = plan_of(&pool, "WITH going_on AS MATERIALIZED").await.to_string();
    assert!(plan.contains("portal_visits_end"), "{plan}");
    assert!(!plan.contains("portal_visits_pkey"), "{plan}");
}

#[testkit::database_test]
async fn the_names_of_a_reseller_are_not_looked_for_among_the_visits_of_all(pool: PgPool) {
    let visits = "INSERT INTO api_keys (id, name, reseller_id, roles, digest, created_at)
                  SELECT gen_random_uuid(), 'shop', 'acme', ARRAY['reseller'], sha256('key'), now();
                  INSERT INTO portal_visits (id, digest, reseller_id, person_id, person_name, capabilities, api_key_id,
                                             began_at, last_seen_at, ends_at, ended_at, landing)
                  SELECT gen_random_uuid(), sha256(n::text::bytea), 'reseller-' || n % 100, 'anna', 'Anna', '{}', k.id, now(), now(), now(),
                         now(), '/app'
                  FROM generate_series(1, 10000) AS n, api_keys k;
                  ANALYZE portal_visits";
    sqlx::raw_sql(visits).execute(&pool).await.unwrap();
    let plan = plan_of(&pool, "ORDER BY max(v.began_at) DESC").await;
    assert!(reading(&plan, "portal_visits_of_reseller").is_some(), "{plan:#}");
}

/// Subscriptions of a thousand resellers, a few of them deleted.
async fn fill_subscriptions(pool: &PgPool) {
    let subscriptions = format!(
        "INSERT INTO subscriptions (id, reseller_id, url, event_types, email, state, state_reason, state_changed_at, created_at, updated_at,
                                    deleted_at)
         SELECT gen_random_uuid(), 'reseller-' || n % 1000, 'https://hooks-' || n % 1000 || '.example/' || n, ARRAY['*'], 'ops@acme.example', 'ACTIVE',
                'VERIFIED', now(), now(), now(), CASE WHEN n % 1001 = 0 THEN now() END
         FROM generate_series(1, {ROWS}) AS n;
         ANALYZE subscriptions"
    );
    sqlx::raw_sql(AssertSqlSafe(subscriptions))
        .execute(pool)
        .await
        .unwrap();
}

#[testkit::database_test]
async fn what_is_in_the_url_of_a_reseller_is_not_looked_for_among_the_subscriptions_of_all(pool: PgPool) {
    fill_subscriptions(&pool).await;
    let plan = plan_of(&pool, "WITH of_reseller AS MATERIALIZED").await;
    assert!(reading(&plan, "subscriptions_reseller").is_some(), "{plan:#}");
    let read = plan.to_string();
    for whole in ["subscriptions_pkey", "Seq Scan"] {
        assert!(!read.contains(whole), "{plan:#}");
    }
}

#[testkit::database_test]
async fn resellers_whose_names_begin_alike_are_not_looked_for_among_all(pool: PgPool) {
    fill_subscriptions(&pool).await;
    let plan = plan_of(&pool, "OFFSET 0) AS named").await;
    let read = reading(&plan, "subscriptions_reseller_name").unwrap_or_else(|| panic!("{plan:#}"));
    assert!(!read["Index Cond"].is_null(), "{plan:#}");
}

#[testkit::database_test]
async fn subscriptions_at_an_endpoint_are_not_looked_for_among_all(pool: PgPool) {
    fill_subscriptions(&pool).await;
    let plan = plan_of(&pool, "WHERE endpoint_of(url) = $1").await;
    let read = reading(&plan, "subscriptions_endpoint").unwrap_or_else(|| panic!("{plan:#}"));
    assert!(!read["Index Cond"].is_null(), "{plan:#}");
}

#[testkit::database_test]
async fn open_quota_requests_are_not_looked_for_among_all_that_were_ever_made(pool: PgPool) {
    fill_subscriptions(&pool).await;
    // A few of them are open.
    let requests = "INSERT INTO quota_requests (id, subscription_id, reseller_id, requested, reason, status, decided_by, created_at, decided_at)
                    SELECT gen_random_uuid(), s.id, s.reseller_id, 500, 'more', CASE WHEN n % 1000 = 0 THEN 'REQUESTED' ELSE 'DENIED' END,
                           CASE WHEN n % 1000 <> 0 THEN 'ann' END, now(), CASE WHEN n % 1000 <> 0 THEN now() END
                    FROM (SELECT id, reseller_id, row_number() OVER () AS n FROM subscriptions) AS s;
                    ANALYZE quota_requests";
    sqlx::raw_sql(requests).execute(&pool).await.unwrap();
    for (words, index) in [
        ("status = 'REQUESTED' AND status = $2", "quota_requests_open"),
        (
            "WHERE subscription_id = $1 AND ($2::text IS NULL OR status = $2)",
            "quota_requests_subscription",
        ),
    ] {
        let plan = plan_of(&pool, words).await;
        assert!(reading(&plan, index).is_some(), "{plan:#}");
        assert!(!plan.to_string().contains("quota_requests_pkey"), "{plan:#}");
    }
}

/// What these read while they are empty is what they read ever after: a plan is kept, and a table of budgets fills up within seconds when
/// ten thousand subscriptions begin.
#[testkit::database_test]
async fn the_lane_looks_up_the_rows_of_subscriptions_also_by_a_plan_from_when_there_were_none(pool: PgPool) {
    const TABLES: [&str; 3] = [
        "subscription_budgets",
        "subscription_paces",
        "subscription_sidelines",
    ];
    fn unconditional(node: &Value, found: &mut Vec<String>) {
        let table = node["Relation Name"].as_str().unwrap_or_default();
        let scan = node["Node Type"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("Scan"));
        if scan && TABLES.contains(&table) && node["Index Cond"].is_null() {
            found.push(table.to_owned());
        }
        for child in node["Plans"].as_array().into_iter().flatten() {
            unconditional(child, found);
        }
    }
    sqlx::raw_sql("ANALYZE subscription_budgets, subscription_paces, subscription_sidelines")
        .execute(&pool)
        .await
        .unwrap();
    let mut connection = connect(&pool).await;
    let mut lane = statements(&[
        // Both claims and the beginning of counting, and both promotions.
        "enter_lane(l.name, l.changes)",
        "sendable AS (",
        // Lines: looking at them, what is put off and joins them, finding them, their limits, and a change of limits.
        "looked_at AS (",
        "in_line AS (",
        "RECURSIVE hop AS",
        "FROM subscription_budgets WHERE subscription_id = s.id OFFSET 0",
        "SET changed_at = now(), release_at",
        // The end of an outage, and that of subscriptions.
        "UPDATE subscription_sidelines l SET outage_class = NULL",
        "sidelines AS (DELETE",
    ]);
    lane.retain(|(query, _)| TABLES.iter().any(|table| query.contains(table)));
    assert_eq!(lane.len(), 12, "{lane:?}");
    for (query, parameters) in lane {
        let plan = plan(&mut connection, &query, parameters).await;
        let mut found = Vec::new();
        unconditional(&plan, &mut found);
        assert!(found.is_empty(), "{found:?} in the plan of {query}\n{plan:#}");
    }
    connection.close().await.unwrap();
}
