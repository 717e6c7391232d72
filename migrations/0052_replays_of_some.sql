-- A replay can be of some event types, or of some of what a subscription missed. None is all, as in what an earlier version writes.
SET LOCAL lock_timeout = '5s';

ALTER TABLE replays ADD COLUMN event_types text[], ADD COLUMN statuses text[];

COMMENT ON COLUMN replays.event_types IS 'Of these alone; null for all that its subscription gets.';
COMMENT ON COLUMN replays.statuses IS 'FAILED, GIVEN_UP, or MISSED for events that it has no notification of; null for all of them.';
