//! Dead letters of all kinds, made by one statement: few values of each property, so that any filter meets some of them.

use sqlx::PgPool;

/// Makes `count` dead letters: of both lanes, every reason, a few fingerprints, targets, subscriptions, resellers, event types
/// and prototypes, one every 37 seconds up to now, pairs of them at the same time; every tenth is resolved.
pub(crate) async fn make_dead_letters(pool: &PgPool, count: i32) {
    sqlx::query(
        "INSERT INTO dead_letters (lane, reason, fingerprint, push_id, notification_id, subscription_id, reseller_id,
                                   event_type, prototype, attempts, error_type, detail, target, created_at, state,
                                   resolved_at, resolved_by, note)
         SELECT lane, (ARRAY['FAILED', 'GIVEN_UP', 'GIVEN_UP', 'REJECTED'])[1 + k % 4],
                CASE WHEN push THEN 'swrve/503/' || k % 7 ELSE (ARRAY['delivery/timeout', 'delivery/dns',
                                                                     'delivery/http/503/html'])[1 + k % 3] END,
                CASE WHEN push THEN gen_random_uuid() END, CASE WHEN NOT push THEN gen_random_uuid() END,
                CASE WHEN NOT push THEN ('00000000-0000-4000-8000-00000000000' || k % 5)::uuid END,
                CASE WHEN NOT push THEN 'reseller-' || k % 2 END, CASE WHEN NOT push THEN 'domain.type' || k % 3 END,
                CASE WHEN push AND k % 5 > 0 THEN 'prototype-' || k % 5 END, 3, 'HTTP', 'dead letter ' || n,
                CASE WHEN push THEN (k % 3)::text ELSE 'https://hooks-' || k % 4 || '.example' END,
                now() - (n / 2) * interval '37 seconds', state, CASE WHEN state <> 'OPEN' THEN now() END,
                CASE WHEN state <> 'OPEN' THEN 'a test' END, CASE WHEN state = 'DISCARDED' THEN 'because' END
         FROM (SELECT n, hashint4(n) & 65535 AS k, n % 3 > 0 AS push,
                      CASE WHEN n % 3 > 0 THEN 'push' ELSE 'reseller' END AS lane,
                      CASE WHEN n % 20 = 7 THEN 'REPLAYED' WHEN n % 20 = 17 THEN 'DISCARDED' ELSE 'OPEN' END AS state
               FROM generate_series(1, $1) AS n) AS made",
    )
    .bind(count)
    .execute(pool)
    .await
    .unwrap();
}
