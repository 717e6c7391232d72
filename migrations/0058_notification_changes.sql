-- The change feed of resellers: which of their notifications changed, in an order in which nothing is passed over. It is written for those
-- resellers alone that listen, so that it costs nothing otherwise.
SET LOCAL lock_timeout = '5s';

CREATE TABLE change_listeners (
    reseller_id text        PRIMARY KEY,
    since       timestamptz NOT NULL,
    complete_from xid8,
    until       timestamptz NOT NULL,
    CONSTRAINT reseller_is_given CHECK (reseller_id <> '')
);

COMMENT ON TABLE change_listeners IS 'Resellers whose changes are noted, until they have not asked for a while.';
COMMENT ON COLUMN change_listeners.complete_from IS
    'Of this transaction and all later ones every change is noted and still there; null between beginning to listen and knowing that.';

CREATE TABLE notification_changes (
    reseller_id     text        NOT NULL,
    -- Of a statement all changes have the same, and of two transactions the one that began to write later has the greater one, whichever is
    -- committed first: what is less than the oldest that still runs is whole, and nothing is added to it any more.
    xid             xid8        NOT NULL DEFAULT pg_current_xact_id(),
    id              bigint      GENERATED ALWAYS AS IDENTITY,
    subscription_id uuid        NOT NULL,
    notification_id uuid        NOT NULL,
    at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (reseller_id, xid, id)
);

COMMENT ON TABLE notification_changes IS 'Changes of notifications of those who listen, kept for minutes.';

-- One look at a table of a few rows a statement, whatever it changes. A function that may change something sees in each of its statements
-- what was committed by then: who began to listen before this transaction began to write is seen.
CREATE FUNCTION note_notification_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM change_listeners WHERE until > now()) THEN
        INSERT INTO notification_changes (reseller_id, subscription_id, notification_id)
        SELECT c.reseller_id, c.subscription_id, c.id
        FROM changed c JOIN change_listeners l ON l.reseller_id = c.reseller_id AND l.until > now()
        -- That it is on its way to a dispatcher is nothing to a reseller.
        WHERE TG_OP = 'INSERT' OR c.status <> 'IN_MEMORY';
    END IF;
    RETURN NULL;
END;
$$;

CREATE TRIGGER notes_new_ones AFTER INSERT ON notifications
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_notification_changes();
CREATE TRIGGER notes_changes AFTER UPDATE ON notifications
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_notification_changes();
