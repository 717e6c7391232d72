-- The references are looked at when the statement ends, so the order among these does not matter.
WITH gone AS (
    SELECT s.id FROM subscriptions s
    WHERE s.deleted_at < $1
      AND NOT EXISTS (SELECT FROM notifications n WHERE n.subscription_id = s.id AND n.reseller_id <> '')
    ORDER BY s.deleted_at LIMIT $2 FOR UPDATE OF s SKIP LOCKED),
secrets AS (DELETE FROM signing_secrets c USING gone g WHERE c.subscription_id = g.id),
-- An array of one is looked up, as in the claims.
budgets AS (DELETE FROM subscription_budgets c USING gone g WHERE c.subscription_id = ANY (ARRAY[g.id])),
paces AS (DELETE FROM subscription_paces c USING gone g WHERE c.subscription_id = ANY (ARRAY[g.id])),
sidelines AS (DELETE FROM subscription_sidelines c USING gone g WHERE c.subscription_id = ANY (ARRAY[g.id])),
requests AS (DELETE FROM quota_requests c USING gone g WHERE c.subscription_id = g.id),
replays AS (DELETE FROM replays c USING gone g WHERE c.subscription_id = g.id),
mails AS (DELETE FROM emails c USING gone g WHERE c.subscription_id = g.id),
held AS (DELETE FROM pauses c USING gone g WHERE c.scope = 'subscription' AND c.key = g.id::text)
DELETE FROM subscriptions s USING gone g WHERE s.id = g.id
