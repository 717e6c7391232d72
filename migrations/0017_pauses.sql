-- What operators have stopped for a while: a lane, one subscription, or all of a reseller.
SET LOCAL lock_timeout = '5s';

CREATE TABLE pauses (
    scope     text        NOT NULL,
    key       text        NOT NULL,
    note      text        NOT NULL,
    paused_by text        NOT NULL,
    paused_at timestamptz NOT NULL,
    PRIMARY KEY (scope, key),
    CONSTRAINT scope_is_known CHECK (scope IN ('lane', 'subscription', 'reseller')),
    CONSTRAINT lane_is_known CHECK (scope <> 'lane' OR key IN ('push', 'reseller')),
    CONSTRAINT a_pause_has_a_reason CHECK (btrim(note) <> '')
);

COMMENT ON TABLE pauses IS 'One row for each pause that is in force. A reseller''s own pause is in its subscription.';

CREATE TABLE lanes (
    name    text    PRIMARY KEY,
    paused  boolean NOT NULL DEFAULT false,
    changes bigint  NOT NULL DEFAULT 0,
    CONSTRAINT lane_is_known CHECK (name IN ('push', 'reseller'))
);
INSERT INTO lanes (name) VALUES ('push'), ('reseller');

COMMENT ON TABLE lanes IS 'What a claiming statement asks before it claims.';
COMMENT ON COLUMN lanes.changes IS 'Grows with every pause and resumption that concerns the lane, its subscriptions included.';

-- Asked once by every statement that claims. A pause takes the same lock exclusively and holds it until it has committed.
-- So it waits for claims that asked before it, and those that ask after it see it: not by the snapshot of their statement,
-- which may be older, but by that of the query in here, since a volatile function takes a new one. A claim whose snapshot
-- is older than the last pause has judged by what does not hold any more, and begins anew.
CREATE FUNCTION enter_lane(lane text, seen bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    present lanes;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('postrider.lane/' || lane, 0));
    SELECT * INTO STRICT present FROM lanes WHERE name = lane;
    IF present.changes <> seen THEN
        RAISE EXCEPTION 'the pauses of lane % were changed just now', lane USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN NOT present.paused;
END
$$;

-- Everything that asks whether a subscription may get something now asks one column, whoever has paused it.
ALTER TABLE subscriptions ADD COLUMN held_at timestamptz;
ALTER TABLE subscriptions
    ADD COLUMN suspended boolean NOT NULL GENERATED ALWAYS AS (paused_at IS NOT NULL OR held_at IS NOT NULL) STORED;

COMMENT ON COLUMN subscriptions.held_at IS 'Since when an operator has it paused, itself or with its reseller; see pauses.';
COMMENT ON COLUMN subscriptions.suspended IS 'Whether it is paused, by its reseller or by an operator.';
