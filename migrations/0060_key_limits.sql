-- Keys that end by themselves, say when they were last used, and may hand in no more than their scope and pace allow.
--
-- Replicas from before know neither: they let such a key in whatever its scope, and after its end, until they are replaced.
SET LOCAL lock_timeout = '5s';

ALTER TABLE api_keys
    ADD COLUMN expires_at   timestamptz,
    ADD COLUMN used_at      timestamptz,
    ADD COLUMN scope        jsonb,
    ADD COLUMN per_second   integer,
    ADD COLUMN successor_of uuid REFERENCES api_keys (id),
    ADD CONSTRAINT limits_are_of_ingest_keys
        CHECK (scope IS NULL AND per_second IS NULL OR roles = ARRAY ['ingest']) NOT VALID,
    ADD CONSTRAINT per_second_is_positive CHECK (per_second > 0) NOT VALID;

COMMENT ON COLUMN api_keys.used_at IS 'When it was last looked up for a request, to about a minute.';
COMMENT ON COLUMN api_keys.scope IS 'To what an ingest key is limited (lane, prototypes, resellers, eventTypes); null when to nothing.';
COMMENT ON COLUMN api_keys.per_second IS 'How many pushes and events together it may hand in a second at each replica of ingest-api.';
COMMENT ON COLUMN api_keys.successor_of IS 'The first key of those that were rotated into this one: Idempotency-Keys are remembered under it.';
