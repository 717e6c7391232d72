-- A quota request may ask for more attempts a second, besides more notifications a day. Null for those of before, and for those that ask for
-- the daily quota alone.
SET LOCAL lock_timeout = '5s';

ALTER TABLE quota_requests
    ADD COLUMN asks_daily           boolean NOT NULL DEFAULT true,
    ADD COLUMN requested_per_second integer,
    ADD COLUMN granted_per_second   integer,
    ADD CONSTRAINT requested_per_second_is_positive CHECK (requested_per_second > 0) NOT VALID,
    ADD CONSTRAINT an_approval_grants_per_second
        CHECK (granted_per_second IS NULL OR status = 'APPROVED' AND granted_per_second > 0) NOT VALID;

COMMENT ON COLUMN quota_requests.asks_daily IS
    'Whether a daily quota was asked for or granted; otherwise requested and granted are the one of then, and an approval leaves it as it is.';
COMMENT ON COLUMN quota_requests.requested_per_second IS 'Attempts a second that are asked for; null when the request leaves them as they are.';
