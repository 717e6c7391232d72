-- The catalogue of event types: what resellers can subscribe to, and what payloads of a type look like.
SET LOCAL lock_timeout = '5s';

CREATE TABLE event_types (
    name        text        PRIMARY KEY,
    description text        NOT NULL,
    attributes  jsonb       NOT NULL DEFAULT '[]',
    example     jsonb       NOT NULL,
    schema      jsonb,
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    retired_at  timestamptz,
    CONSTRAINT name_is_dotted
        CHECK (name ~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$' AND length(name) <= 100),
    CONSTRAINT attributes_are_listed CHECK (jsonb_typeof(attributes) = 'array'),
    CONSTRAINT example_is_an_object CHECK (jsonb_typeof(example) = 'object')
);

COMMENT ON COLUMN event_types.attributes IS 'For readers: [{"name", "type", "description", "required"}].';
COMMENT ON COLUMN event_types.schema IS 'A JSON Schema that payloads are checked against; NULL checks nothing.';
COMMENT ON COLUMN event_types.retired_at IS 'New events of a retired type are refused; old ones keep their meaning.';
