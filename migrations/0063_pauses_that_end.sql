-- A pause can end by itself. Versions that do not know the column make pauses that last until they are resumed, and resume any.
SET LOCAL lock_timeout = '5s';

ALTER TABLE pauses ADD COLUMN until timestamptz;

COMMENT ON COLUMN pauses.until IS 'When it ends by itself; NULL where it lasts until it is resumed.';
