WITH ended AS (
    SELECT id FROM signing_secrets
    WHERE least(expires_at, revoked_at) < $1 AND (expires_at IS NOT NULL OR revoked_at IS NOT NULL)
    ORDER BY least(expires_at, revoked_at) LIMIT $2),
of_deleted AS (
    SELECT k.id FROM subscriptions s JOIN signing_secrets k ON k.subscription_id = s.id
    WHERE s.deleted_at < $1 LIMIT $2)
DELETE FROM signing_secrets WHERE id IN (SELECT id FROM ended UNION SELECT id FROM of_deleted)
