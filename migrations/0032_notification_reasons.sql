-- As 0031_push_reasons.sql: why a notification waits, was moved or has ended.
SET LOCAL lock_timeout = '5s';

-- A failure is told by its fingerprint, such as delivery/http/503/json.
ALTER TABLE notifications
    ADD CONSTRAINT reason_is_known CHECK (reason IN (
        'QUOTA', 'RATE', 'POSTPONED', 'BUSY', 'WITHHELD', 'PAUSED', 'UNVERIFIED', 'BACKLOG', 'RESENT', 'REPLAYED', 'CANCELLED',
        'EXPIRED', 'SUBSCRIPTION_DEACTIVATED', 'SUBSCRIPTION_DELETED') OR starts_with(reason, 'delivery/')) NOT VALID;
