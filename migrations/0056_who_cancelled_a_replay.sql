-- Who cancelled a replay, for its reseller, whose people and programs share its subscriptions. Null for what an earlier version cancelled.
SET LOCAL lock_timeout = '5s';

ALTER TABLE replays ADD COLUMN cancelled_by text;

COMMENT ON COLUMN replays.cancelled_by IS 'The API key or the person; null unless it was cancelled.';
