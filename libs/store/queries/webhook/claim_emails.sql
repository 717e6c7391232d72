WITH due AS (
    SELECT id, kind, subscription_id, next_attempt_at, data FROM emails
    WHERE status = 'PENDING' AND next_attempt_at <= $1
      AND ($5 OR kind = 'ADDRESS_CONFIRMATION' OR EXISTS (
          SELECT FROM subscriptions s JOIN email_addresses a
              ON a.reseller_id = s.reseller_id AND a.address = lower(emails.recipient)
          WHERE s.id = emails.subscription_id AND a.confirmed_at IS NOT NULL))
    ORDER BY next_attempt_at, id LIMIT $2 FOR UPDATE SKIP LOCKED),
-- The process that wrote it may have seen the one before it still waiting, when that was claimed at the same moment.
early AS (
    SELECT d.id, coalesce(max(l.at) FILTER (WHERE l.tells), min(l.at)) + interval '1 hour' AS due_at
    FROM due d CROSS JOIN LATERAL (
        SELECT coalesce(e.finished_at, $1) AS at,
               -- A refusal of another status is told at once. A mail of an earlier version names none, and stands for each.
               e.kind <> 'DELIVERY_REFUSED' OR ((e.data -> 'codes') @> (d.data -> 'codes')) IS NOT FALSE AS tells
        FROM emails e
        WHERE e.subscription_id = d.subscription_id AND e.kind = d.kind
          AND e.kind IN ('RETRIES_EXHAUSTED', 'DELIVERY_REFUSED', 'DELIVERIES_RECOVERED')
          AND (e.finished_at > $1::timestamptz - interval '1 hour'
               OR (e.status = 'SENDING' AND e.leased_until > now()))) AS l
    -- An endpoint that answers with ever other statuses gets no mail for each.
    GROUP BY d.id HAVING bool_or(l.tells) OR count(*) >= 5),
put_off AS (
    UPDATE emails e SET next_attempt_at = y.due_at FROM early y WHERE e.id = y.id),
claimed AS (
    UPDATE emails e
    SET status = 'SENDING', attempts = e.attempts + 1, next_attempt_at = NULL, lease_token = $3,
        leased_until = now() + $4::interval
    FROM due d WHERE e.id = d.id AND NOT EXISTS (SELECT FROM early y WHERE y.id = d.id)
    RETURNING e.id, e.kind, e.subscription_id, e.recipient, e.data, e.occurrences, e.attempts, e.created_at,
              d.next_attempt_at AS due_at)
SELECT id AS "id!", $3 AS "lease_token!", kind AS "kind!: Name<_>", subscription_id AS "subscription_id!",
       recipient AS "recipient!", data AS "data!", occurrences AS "occurrences!: Count", attempts AS "attempts!: Count",
       created_at AS "created_at!"
FROM claimed ORDER BY due_at, id
