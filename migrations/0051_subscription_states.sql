-- Which states a subscription has had, and when it was paused, for its reseller. A trigger, so that whatever changes a state is kept, in the
-- transaction of the change, by processes of an earlier version too. What was before this migration is not known.
SET LOCAL lock_timeout = '5s';

CREATE TABLE subscription_states (
    id              uuid        NOT NULL,
    subscription_id uuid        NOT NULL REFERENCES subscriptions (id) ON DELETE CASCADE,
    at              timestamptz NOT NULL,
    state           text        NOT NULL,
    state_reason    text        NOT NULL,
    paused          boolean     NOT NULL,
    held            boolean     NOT NULL,
    PRIMARY KEY (subscription_id, id)
);

COMMENT ON COLUMN subscription_states.id IS 'Sorts by time: no two entries of a subscription have the same.';
COMMENT ON COLUMN subscription_states.paused IS 'Whether its reseller had it paused from then on.';
COMMENT ON COLUMN subscription_states.held IS 'Whether an operator had it paused from then on.';

CREATE FUNCTION note_subscription_state() RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    noted timestamptz := greatest(NEW.updated_at, NEW.state_changed_at);
    -- As identifiers of version 7 begin: the milliseconds of the time. Never those of an entry before, since two changes may fall into one
    -- millisecond, and the second may come from a machine whose clock is behind. The row of the subscription is locked by its change, so
    -- the entry before is committed.
    millis bigint := floor(extract(epoch FROM noted) * 1000);
    last   bigint := (SELECT ('x' || translate(left(s.id::text, 13), '-', ''))::bit(48)::bigint
                      FROM subscription_states s WHERE s.subscription_id = NEW.id ORDER BY s.id DESC LIMIT 1);
BEGIN
    INSERT INTO subscription_states (id, subscription_id, at, state, state_reason, paused, held)
    VALUES ((lpad(to_hex(greatest(millis, last + 1)), 12, '0') || '7000' || '8'
             || right(md5(clock_timestamp()::text || random()::text), 15))::uuid,
            NEW.id, noted, NEW.state, NEW.state_reason, NEW.paused_at IS NOT NULL, NEW.held_at IS NOT NULL);
    RETURN NULL;
END
$$;

CREATE TRIGGER subscriptions_state_made
    AFTER INSERT ON subscriptions
    FOR EACH ROW
    EXECUTE FUNCTION note_subscription_state();

CREATE TRIGGER subscriptions_state_changed
    AFTER UPDATE ON subscriptions
    FOR EACH ROW
    WHEN (OLD.state <> NEW.state OR OLD.state_reason <> NEW.state_reason
          OR (OLD.paused_at IS NULL) <> (NEW.paused_at IS NULL) OR (OLD.held_at IS NULL) <> (NEW.held_at IS NULL))
    EXECUTE FUNCTION note_subscription_state();
