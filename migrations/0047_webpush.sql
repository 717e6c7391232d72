-- Web Push: the clients, each with the node that it is connected to and its channels, and the messages that wait for them, both by the
-- month that the client reads. A month is one partition of each table: made ahead of time, dropped as a whole when it is old.
SET LOCAL lock_timeout = '5s';

CREATE TABLE webpush_clients (
    uaid         uuid        NOT NULL,
    -- The first day of the month whose messages the client reads and whose messages senders store.
    month        date        NOT NULL,
    node         text,
    connected_at timestamptz NOT NULL,
    router_type  text        NOT NULL,
    channels     uuid[]      NOT NULL,
    created_at   timestamptz NOT NULL,
    -- Led by the identifier: a client is found in each month by its index, and a month is never scanned.
    PRIMARY KEY (uaid, month),
    CONSTRAINT a_month_has_its_first_day CHECK (extract(day FROM month) = 1)
) PARTITION BY RANGE (month);

COMMENT ON COLUMN webpush_clients.node IS 'Where it is connected: the URL of the node''s router port. Null when it is not connected.';
COMMENT ON COLUMN webpush_clients.connected_at IS 'Since when, by the clock of the node. Guards the clearing of the node.';
COMMENT ON COLUMN webpush_clients.channels IS 'In the row of the client, so that a move to another month takes them along.';

-- A sequence of its own, since a table with an identity cannot become a partition.
CREATE SEQUENCE webpush_message_ids AS bigint;

CREATE TABLE webpush_messages (
    uaid        uuid        NOT NULL,
    month       date        NOT NULL,
    id          bigint      NOT NULL DEFAULT nextval('webpush_message_ids'),
    channel     uuid        NOT NULL,
    topic       text,
    version     text        NOT NULL,
    received_at timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    data        bytea,
    encoding    text,
    encryption  text,
    crypto_key  text,
    PRIMARY KEY (uaid, month, id),
    CONSTRAINT a_body_has_an_encoding CHECK ((data IS NULL) = (encoding IS NULL)),
    CONSTRAINT only_a_body_has_keys CHECK (data IS NOT NULL OR (encryption IS NULL AND crypto_key IS NULL))
) PARTITION BY RANGE (month);

-- A newer message of a topic replaces the older one.
CREATE UNIQUE INDEX webpush_messages_topic ON webpush_messages (uaid, month, channel, topic) WHERE topic IS NOT NULL;

-- What is encrypted cannot be compressed: trying costs time.
ALTER TABLE webpush_messages ALTER COLUMN data SET STORAGE EXTERNAL;

COMMENT ON COLUMN webpush_messages.version IS 'The message id that senders and clients see.';
COMMENT ON COLUMN webpush_messages.expires_at IS 'Its time of receipt and its TTL.';

-- Makes the partitions of `months` months from `first_month` on, where they do not exist.
CREATE FUNCTION create_webpush_partitions(first_month date, months integer) RETURNS integer
    LANGUAGE plpgsql
    SET lock_timeout = '5s'
AS $$
DECLARE
    parent  text;
    child   text;
    month   date;
    created integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('postrider.partitions'));
    FOR i IN 0 .. months - 1 LOOP
        month := (date_trunc('month', first_month) + make_interval(months => i))::date;
        FOREACH parent IN ARRAY ARRAY ['webpush_clients', 'webpush_messages'] LOOP
            child := parent || to_char(month, '"_y"YYYY"m"MM');
            CONTINUE WHEN to_regclass(child) IS NOT NULL;
            -- Room in the pages, since a client that connects changes its row and none of its indexes.
            EXECUTE format(
                'CREATE TABLE %I (LIKE %I INCLUDING ALL) WITH (fillfactor = 70, '
                'autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, '
                'autovacuum_vacuum_cost_delay = 1)', child, parent);
            EXECUTE format(
                'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, child,
                month, (month + interval '1 month')::date);
            created := created + 1;
        END LOOP;
    END LOOP;
    RETURN created;
END
$$;

-- Drops the months before `before` with the clients that have not connected since and what waited for them; returns the months. The
-- present month and the two before it stay, whatever the clock of the caller says. It gives way after a moment, as to a backup that
-- reads, since everything else would wait behind it.
CREATE FUNCTION drop_webpush_partitions(before date) RETURNS SETOF text
    LANGUAGE plpgsql
    SET lock_timeout = '100ms'
AS $$
DECLARE
    suffix text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('postrider.partitions'));
    FOR suffix IN
        SELECT DISTINCT right(c.relname, 8)
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent IN ('webpush_clients'::regclass, 'webpush_messages'::regclass)
          AND to_date(right(c.relname, 7), 'YYYY"m"MM') < least(
              date_trunc('month', before), date_trunc('month', now() AT TIME ZONE 'UTC') - interval '2 months')
        ORDER BY 1
    LOOP
        -- Dropping a partition locks its parent too: that lock comes first, as in every other statement, and the clients come before
        -- the messages, or the two would wait for each other.
        LOCK TABLE ONLY webpush_clients IN ACCESS EXCLUSIVE MODE;
        LOCK TABLE ONLY webpush_messages IN ACCESS EXCLUSIVE MODE;
        EXECUTE format('DROP TABLE IF EXISTS %I', 'webpush_clients_' || suffix);
        EXECUTE format('DROP TABLE IF EXISTS %I', 'webpush_messages_' || suffix);
        RETURN NEXT suffix;
    END LOOP;
END
$$;

-- How many whole months after the one that holds `at` have their partitions already.
CREATE FUNCTION webpush_months_ahead(at date) RETURNS integer
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT min(ahead)::integer
    FROM (SELECT p.parent, count(c.oid) AS ahead
          FROM (VALUES ('webpush_clients'), ('webpush_messages')) AS p(parent)
          LEFT JOIN pg_inherits i ON i.inhparent = p.parent::regclass
          LEFT JOIN pg_class c
              ON c.oid = i.inhrelid AND to_date(right(c.relname, 7), 'YYYY"m"MM') > date_trunc('month', at)
          GROUP BY p.parent) AS tables;
END;

-- The month before is made too, for a node whose clock is behind.
SELECT create_webpush_partitions((now() AT TIME ZONE 'UTC' - interval '1 month')::date, 5);
