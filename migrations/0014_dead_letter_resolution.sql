-- A dead letter is open until somebody has it replayed or discards it; what it is about can be searched for.
SET LOCAL lock_timeout = '5s';

ALTER TABLE dead_letters
    ADD COLUMN state       text NOT NULL DEFAULT 'OPEN',
    ADD COLUMN resolved_at timestamptz,
    ADD COLUMN resolved_by text,
    ADD COLUMN note        text,
    ADD COLUMN job_id      uuid,
    ADD COLUMN reseller_id text,
    ADD COLUMN prototype   text,
    ADD COLUMN target      text NOT NULL DEFAULT '';
-- Checked for the rows of before in a later migration, which need not keep everybody else out for that.
ALTER TABLE dead_letters
    ADD CONSTRAINT state_is_known CHECK (state IN ('OPEN', 'REPLAYED', 'DISCARDED')) NOT VALID,
    ADD CONSTRAINT a_resolution_is_signed
        CHECK ((state = 'OPEN') = (resolved_at IS NULL) AND (resolved_at IS NULL) = (resolved_by IS NULL)) NOT VALID,
    ADD CONSTRAINT discarding_has_a_reason CHECK (state <> 'DISCARDED' OR coalesce(btrim(note), '') <> '') NOT VALID;

COMMENT ON COLUMN dead_letters.target IS
    'Where the failure was: scheme, host and port of the endpoint, or Swrve''s code; empty when nothing answered for it.';
COMMENT ON COLUMN dead_letters.prototype IS 'Of a push: its message prototype.';
COMMENT ON COLUMN dead_letters.job_id IS 'The bulk job that resolved it, if one did.';
