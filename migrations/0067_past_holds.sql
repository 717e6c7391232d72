-- Outages that are over, so that a story can say what its time went to. A trigger, so that whatever ends a hold keeps it, in the transaction of
-- the change, by processes of an earlier version too. What was before this migration is not known.
SET LOCAL lock_timeout = '5s';

CREATE TABLE past_holds (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    class       text        NOT NULL,
    since       timestamptz NOT NULL,
    answered_at timestamptz,
    ended_at    timestamptz NOT NULL,
    probes      bigint      NOT NULL,
    last_answer text        NOT NULL,
    CONSTRAINT it_ends_after_its_beginning CHECK (ended_at >= since)
);

CREATE INDEX past_holds_ended ON past_holds (ended_at);

COMMENT ON TABLE past_holds IS 'One row for each outage that is over. One that engines hold and that no other followed is still in holds.';
COMMENT ON COLUMN past_holds.ended_at IS
    'When what had waited was sent; of a class that engines hold, until when an engine had last said so.';

-- A process that dies ends nothing: the next leader goes on with the hold of the push lane, and what engines hold has ended with its lease.
CREATE FUNCTION keep_past_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO past_holds (class, since, answered_at, ended_at, probes, last_answer)
    VALUES (OLD.class, OLD.since, OLD.answered_at, greatest(OLD.since, least(OLD.leased_until, now())), OLD.probes, OLD.last_answer);
    RETURN NULL;
END
$$;

CREATE TRIGGER holds_ended
    AFTER DELETE ON holds
    FOR EACH ROW
    EXECUTE FUNCTION keep_past_hold();

CREATE TRIGGER holds_followed
    AFTER UPDATE ON holds
    FOR EACH ROW
    WHEN (OLD.since < NEW.since)
    EXECUTE FUNCTION keep_past_hold();
