-- What an outage of one endpoint gave up is sent again by itself: since when the outage lasts, and the jobs that do it.
SET LOCAL lock_timeout = '5s';

ALTER TABLE subscriptions
    ADD COLUMN resend_after_outage boolean,
    ADD COLUMN outage_since        timestamptz,
    ADD COLUMN recover_at          timestamptz,
    ADD COLUMN recoveries_ended    integer NOT NULL DEFAULT 0;

COMMENT ON COLUMN subscriptions.resend_after_outage IS
    'Whether what an outage gave up is sent again by itself; NULL: the configured default.';
COMMENT ON COLUMN subscriptions.outage_since IS
    'What its endpoint''s failing gave up from here on has not been sent again by itself; by the clock that dates letters.';
COMMENT ON COLUMN subscriptions.recover_at IS 'No recovery begins before, by the clock of the database.';
COMMENT ON COLUMN subscriptions.recoveries_ended IS 'Recoveries in a row that failures ended.';

CREATE INDEX subscriptions_outage ON subscriptions (recover_at NULLS FIRST, outage_since)
    WHERE outage_since IS NOT NULL AND failing_since IS NULL AND deleted_at IS NULL;

-- What a recovery is about. With millions of open letters it is better made beforehand, CONCURRENTLY and by this name.
CREATE INDEX IF NOT EXISTS dead_letters_given_up ON dead_letters (subscription_id, created_at, id)
    WHERE state = 'OPEN' AND lane = 'reseller' AND reason = 'GIVEN_UP' AND error_type <> 'OTHER';

-- A trigger, since several statements note that an endpoint fails, those of an earlier version among them. The first letter of an
-- outage may be of a transaction that began a little before it was noted: no statement of a service takes longer than this.
CREATE FUNCTION note_outage() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    NEW.outage_since := least(OLD.failing_since, now()) - interval '10 seconds';
    RETURN NEW;
END
$$;

CREATE TRIGGER subscriptions_outage
    BEFORE UPDATE ON subscriptions
    FOR EACH ROW
    -- The latter for an outage that goes on while this is applied.
    WHEN (NEW.outage_since IS NULL AND OLD.outage_since IS NULL
          AND (NEW.failing_since IS NOT NULL OR OLD.failing_since IS NOT NULL))
    EXECUTE FUNCTION note_outage();

ALTER TABLE dead_letter_jobs
    ADD COLUMN recovers      uuid,
    ADD COLUMN probe         uuid,
    ADD COLUMN ended_because text,
    ADD COLUMN settled       boolean NOT NULL DEFAULT false;

COMMENT ON COLUMN dead_letter_jobs.recovers IS
    'The subscription whose endpoint answers again after an outage: of a job that Postrider has made by itself.';
COMMENT ON COLUMN dead_letter_jobs.probe IS 'The first notification of a recovery: the others wait until it has ended.';
COMMENT ON COLUMN dead_letter_jobs.ended_because IS
    'Of a recovery that no person has cancelled: FAILING, INACTIVE or SWITCHED_OFF.';
COMMENT ON COLUMN dead_letter_jobs.settled IS 'Of a recovery that has ended: whether its consequences have been drawn.';

-- One at a time for each subscription, until its consequences have been drawn.
CREATE UNIQUE INDEX dead_letter_jobs_recovery ON dead_letter_jobs (recovers) WHERE recovers IS NOT NULL AND NOT settled;

-- As those of 0026: one such mail waits for each subscription.
CREATE OR REPLACE TRIGGER emails_gathered
    BEFORE INSERT ON emails
    FOR EACH ROW
    WHEN (NEW.kind IN ('STATE_CHANGED', 'VERIFICATION_FAILED', 'DELIVERIES_RECOVERED') AND NEW.status = 'PENDING')
    EXECUTE FUNCTION gather_email();
