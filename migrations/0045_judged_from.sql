-- A pause does not change since when an endpoint fails, only from when on that counts against it.
SET LOCAL lock_timeout = '5s';

ALTER TABLE subscriptions ADD COLUMN judged_from timestamptz;

COMMENT ON COLUMN subscriptions.judged_from IS
    'Failures count from here when it was paused, or its lane, after failing_since; NULL, or before that: from failing_since.';
