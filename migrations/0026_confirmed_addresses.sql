-- Mails go to addresses that have been confirmed; what is said over and over is gathered; challenges have a floor and a budget.
SET LOCAL lock_timeout = '5s';

CREATE TABLE email_addresses (
    reseller_id  text          NOT NULL,
    address      text          NOT NULL,
    confirmed_at timestamptz,
    code         text,
    wrong_codes  integer       NOT NULL DEFAULT 0,
    asked_at     timestamptz[] NOT NULL DEFAULT '{}',
    created_at   timestamptz   NOT NULL,
    PRIMARY KEY (reseller_id, address),
    CONSTRAINT address_is_folded CHECK (address = lower(address)),
    CONSTRAINT wrong_codes_are_counted CHECK (wrong_codes >= 0)
);

COMMENT ON TABLE email_addresses IS 'Where the mails of a reseller go, once somebody there has confirmed it: for all of its subscriptions.';
COMMENT ON COLUMN email_addresses.code IS 'What the mail asks to be sent back; NULL once it is.';
COMMENT ON COLUMN email_addresses.asked_at IS 'When a mail with the code was written: those of the last day, the oldest first.';

CREATE INDEX email_addresses_address ON email_addresses (address);

-- Those who got mails before go on getting them.
INSERT INTO email_addresses (reseller_id, address, confirmed_at, created_at)
SELECT DISTINCT reseller_id, lower(email), now(), now() FROM subscriptions;

ALTER TABLE emails
    DROP CONSTRAINT kind_is_known,
    ADD CONSTRAINT kind_is_known CHECK (kind IN (
        'RETRIES_EXHAUSTED', 'STATE_CHANGED', 'VERIFICATION_FAILED', 'DELIVERY_REFUSED', 'QUOTA_DECIDED',
        'ADDRESS_CONFIRMATION', 'SECURITY_CHANGED', 'DELIVERIES_RECOVERED')) NOT VALID;

CREATE INDEX emails_of_subscription ON emails (subscription_id, kind, status);

-- A trigger, since several statements write such mails, those of an earlier version among them. Each of them holds the lock of the
-- subscription's row, so that no two look for a waiting mail at once.
CREATE FUNCTION gather_email() RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    by_reseller CONSTANT text[] := ARRAY['BY_RESELLER', 'VERIFICATION_REQUESTED', 'ENDPOINT_CHANGED'];
    reason  text := NEW.data ->> 'reason';
    told_at timestamptz;
    waiting uuid;
BEGIN
    -- What the reseller can bring about as often as it likes is told once in ten minutes.
    IF NEW.kind = 'STATE_CHANGED' AND reason NOT IN ('FAILING', 'RECOVERED') THEN
        SELECT max(coalesce(e.finished_at, e.created_at)) INTO told_at
        FROM emails e
        WHERE e.subscription_id = NEW.subscription_id AND e.kind = NEW.kind AND e.status IN ('SENDING', 'SENT')
          AND (e.data ->> 'reason' = reason OR reason = ANY (by_reseller) AND e.data ->> 'reason' = ANY (by_reseller));
        NEW.next_attempt_at := greatest(NEW.next_attempt_at, told_at + interval '10 minutes');
    END IF;
    SELECT e.id INTO waiting
    FROM emails e
    WHERE e.subscription_id = NEW.subscription_id AND e.kind = NEW.kind AND e.status = 'PENDING'
    ORDER BY e.created_at LIMIT 1
    FOR UPDATE;
    IF waiting IS NULL THEN
        RETURN NEW;
    END IF;
    UPDATE emails e
    SET data = NEW.data, recipient = NEW.recipient, occurrences = e.occurrences + NEW.occurrences,
        created_at = greatest(e.created_at, NEW.created_at),
        next_attempt_at = least(e.next_attempt_at, NEW.next_attempt_at)
    WHERE e.id = waiting;
    RETURN NULL;
END
$$;

CREATE TRIGGER emails_gathered
    BEFORE INSERT ON emails
    FOR EACH ROW
    WHEN (NEW.kind IN ('STATE_CHANGED', 'VERIFICATION_FAILED') AND NEW.status = 'PENDING')
    EXECUTE FUNCTION gather_email();

ALTER TABLE subscriptions
    ADD COLUMN challenge_floor_at timestamptz,
    ADD COLUMN challenges_failed  integer NOT NULL DEFAULT 0;

COMMENT ON COLUMN subscriptions.challenge_floor_at IS 'No command has its endpoint challenged before.';
COMMENT ON COLUMN subscriptions.challenges_failed IS 'Challenges in vain since the last right answer, whatever its endpoint was.';

-- What was challenged lately: budgets are counted from it. A row is of no use after a day.
CREATE TABLE challenges (
    id          uuid        PRIMARY KEY,
    reseller_id text        NOT NULL,
    host        text        NOT NULL,
    site        text        NOT NULL,
    at          timestamptz NOT NULL,
    answered    boolean     NOT NULL DEFAULT false
);

COMMENT ON COLUMN challenges.site IS 'The domain that somebody has registered, which the host belongs to; an address is its own.';

CREATE INDEX challenges_site ON challenges (site, at);
CREATE INDEX challenges_reseller ON challenges (reseller_id, at);
CREATE INDEX challenges_at ON challenges (at);
