-- Reasons are names that the code knows: why something waits, was moved or has ended, why a subscription has its state, why a recovery
-- ended, and which class of failures withholds a subscription. Versions before write no others.
SET LOCAL lock_timeout = '5s';

ALTER TABLE push_notifications
    ADD CONSTRAINT reason_is_known CHECK (reason IN ('REPLAYED', 'CANCELLED')) NOT VALID;

-- A failure is told by its fingerprint, such as delivery/http/503/json.
ALTER TABLE notifications
    ADD CONSTRAINT reason_is_known CHECK (reason IN (
        'QUOTA', 'RATE', 'POSTPONED', 'BUSY', 'WITHHELD', 'PAUSED', 'UNVERIFIED', 'BACKLOG', 'RESENT', 'REPLAYED', 'CANCELLED',
        'EXPIRED', 'SUBSCRIPTION_DEACTIVATED', 'SUBSCRIPTION_DELETED') OR starts_with(reason, 'delivery/')) NOT VALID;

ALTER TABLE subscriptions
    ADD CONSTRAINT state_reason_is_known CHECK (state_reason IN (
        'CREATED', 'VERIFIED', 'FAILING', 'RECOVERED', 'REDIRECTED', 'GONE', 'BY_RESELLER', 'ENDPOINT_CHANGED',
        'VERIFICATION_REQUESTED')) NOT VALID;

ALTER TABLE subscription_sidelines
    ADD CONSTRAINT outage_class_is_known CHECK (outage_class IN ('CONNECT', 'DNS', 'TIMEOUT', 'TLS')) NOT VALID;

ALTER TABLE dead_letter_jobs
    ADD CONSTRAINT ended_because_is_known CHECK (ended_because IN ('FAILING', 'INACTIVE', 'SWITCHED_OFF')) NOT VALID;
