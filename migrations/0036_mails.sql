-- Mails that several statements write are written by one function each. A statement that calls one passes what only it knows; the rest is
-- read from the row of the subscription, in which a function sees what its statement has changed.
SET LOCAL lock_timeout = '5s';

-- Tells of a change of state, to the state that the row has now. Called in RETURNING, it is called for each row that changes.
CREATE FUNCTION mail_state_change(subscription uuid, previous text, at timestamptz, deactivated_at timestamptz DEFAULT NULL)
    RETURNS uuid
    LANGUAGE sql
AS $$
    INSERT INTO emails (id, kind, subscription_id, recipient, data, next_attempt_at, created_at)
    SELECT gen_random_uuid(), 'STATE_CHANGED', s.id, s.email,
           jsonb_strip_nulls(jsonb_build_object(
               'state', s.state, 'previous', previous, 'reason', s.state_reason, 'url', s.url, 'description', s.description,
               'resellerId', s.reseller_id, 'failingSince', s.failing_since, 'deactivatedAt', deactivated_at)),
           at, at
    FROM subscriptions s
    WHERE s.id = subscription
    RETURNING id
$$;

-- Tells that retries were used up. One such mail waits for each subscription, due an hour after the last one was sent; further occasions
-- are counted in it.
CREATE FUNCTION mail_exhausted(subscription uuid, occasions bigint, event_type text, error text, at timestamptz)
    RETURNS uuid
    LANGUAGE sql
AS $$
    INSERT INTO emails AS e (id, kind, subscription_id, recipient, data, occurrences, next_attempt_at, created_at)
    SELECT gen_random_uuid(), 'RETRIES_EXHAUSTED', s.id, s.email,
           jsonb_build_object('url', s.url, 'description', s.description, 'resellerId', s.reseller_id,
                              'eventType', event_type, 'error', error, 'since', at),
           occasions,
           greatest(at, (SELECT coalesce(l.finished_at, at) + interval '1 hour' FROM emails l
                         WHERE l.subscription_id = s.id AND l.kind = 'RETRIES_EXHAUSTED' AND l.status <> 'PENDING'
                         ORDER BY l.created_at DESC LIMIT 1)),
           at
    FROM subscriptions s
    WHERE s.id = subscription AND s.deleted_at IS NULL
    ON CONFLICT (subscription_id) WHERE kind = 'RETRIES_EXHAUSTED' AND status = 'PENDING' DO UPDATE
    SET occurrences = e.occurrences + excluded.occurrences, recipient = excluded.recipient,
        data = excluded.data || jsonb_build_object('since', e.data -> 'since'),
        created_at = greatest(e.created_at, excluded.created_at)
    RETURNING id
$$;
