-- What ends tells so: a reseller hears of refused deliveries and of decided quota requests, a replay counts what it leaves
-- alone because it was cancelled, and an event that became nothing says whom it missed.
SET LOCAL lock_timeout = '5s';

-- Every kind of mail that this version knows. The table holds the mails of a month, so that looking at them is short.
ALTER TABLE emails DROP CONSTRAINT kind_is_known;
ALTER TABLE emails ADD CONSTRAINT kind_is_known
    CHECK (kind IN ('RETRIES_EXHAUSTED', 'STATE_CHANGED', 'VERIFICATION_FAILED', 'DELIVERY_REFUSED', 'QUOTA_DECIDED',
                    'ADDRESS_CONFIRMATION', 'SECURITY_CHANGED', 'DELIVERIES_RECOVERED')) NOT VALID;
ALTER TABLE emails VALIDATE CONSTRAINT kind_is_known;

-- Refused deliveries are told of once in an hour, as exhausted retries are: further ones are counted in the mail that waits.
CREATE UNIQUE INDEX emails_refused_waiting ON emails (subscription_id)
    WHERE kind = 'DELIVERY_REFUSED' AND status = 'PENDING';
-- The last mail of each kind that is told of once in an hour. An index on the first of these kinds alone becomes
-- superfluous; it stays for the statements of the version before.
CREATE INDEX emails_gathered ON emails (subscription_id, kind, created_at)
    WHERE kind IN ('RETRIES_EXHAUSTED', 'DELIVERY_REFUSED');

ALTER TABLE replays ADD COLUMN cancelled bigint NOT NULL DEFAULT 0;

COMMENT ON COLUMN replays.cancelled IS 'Notifications that it left alone because an operator had cancelled them.';

ALTER TABLE events ADD COLUMN missed jsonb;

COMMENT ON COLUMN events.missed IS
    'Of an event that became no notification: the subscriptions of its reseller at that time, and what each of them was like.';
