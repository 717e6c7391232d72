-- Monthly partitions: made ahead of time, dropped when they are old and nothing in them is still due.
SET LOCAL lock_timeout = '5s';

-- The smallest version 7 UUID of a month that starts at `month` (UTC).
CREATE FUNCTION first_id_of_month(month date) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT
    RETURN (lpad(to_hex((extract(epoch FROM month::timestamp AT TIME ZONE 'UTC') * 1000)::bigint), 12, '0')
            || repeat('0', 20))::uuid;

-- Makes the partitions of `months` months from `first_month` on, where they do not exist. Attaching takes a lock that
-- readers and writers do not feel, which creating a table as a partition would not.
CREATE FUNCTION create_month_partitions(first_month date, months integer) RETURNS integer
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
        FOREACH parent IN ARRAY ARRAY ['push_notifications', 'send_attempts'] LOOP
            child := parent || to_char(month, '"_y"YYYY"m"MM');
            CONTINUE WHEN to_regclass(child) IS NOT NULL;
            EXECUTE format(
                'CREATE TABLE %I (LIKE %I INCLUDING ALL) WITH (fillfactor = 70, '
                'autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, '
                'autovacuum_vacuum_cost_delay = 1)', child, parent);
            EXECUTE format(
                'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, child,
                first_id_of_month(month), first_id_of_month((month + interval '1 month')::date));
            created := created + 1;
        END LOOP;
    END LOOP;
    RETURN created;
END
$$;

-- Three questions, because each has a partial index of its own; one question for all four statuses would read the
-- whole month.
CREATE FUNCTION has_unfinished_pushes(suffix text) RETURNS boolean
    LANGUAGE plpgsql
AS $$
DECLARE
    unfinished boolean;
BEGIN
    EXECUTE format(
        'SELECT EXISTS (SELECT FROM %1$I WHERE status = ''PENDING'')'
        ' OR EXISTS (SELECT FROM %1$I WHERE status IN (''SCHEDULED'', ''RETRY''))'
        ' OR EXISTS (SELECT FROM %1$I WHERE status = ''IN_MEMORY'')',
        'push_notifications_' || suffix) INTO unfinished;
    RETURN unfinished;
END
$$;

-- Drops every month before `before` in which all pushes are in a terminal state; returns the names of the months
-- dropped. A month that still holds work is left alone, however old.
CREATE FUNCTION drop_month_partitions(before date) RETURNS SETOF text
    LANGUAGE plpgsql
    SET lock_timeout = '2s'
AS $$
DECLARE
    suffix text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('postrider.partitions'));
    FOR suffix IN
        SELECT right(c.relname, 8)
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'push_notifications'::regclass
          -- Whatever the clock of the caller says, the present month is not old.
          AND to_date(right(c.relname, 7), 'YYYY"m"MM') < least(date_trunc('month', before), date_trunc('month', now()))
        ORDER BY 1
    LOOP
        -- First without a strong lock, so that a month that must stay costs nobody anything; then once more with it,
        -- since a row may have changed in between. Dropping a partition locks its parent too: that lock comes first, as
        -- it does in every other statement, or the two would wait for each other.
        CONTINUE WHEN has_unfinished_pushes(suffix);
        LOCK TABLE ONLY push_notifications, ONLY send_attempts IN ACCESS EXCLUSIVE MODE;
        CONTINUE WHEN has_unfinished_pushes(suffix);
        EXECUTE format('DROP TABLE %I', 'push_notifications_' || suffix);
        EXECUTE format('DROP TABLE IF EXISTS %I', 'send_attempts_' || suffix);
        RETURN NEXT suffix;
    END LOOP;
END
$$;

-- How many whole months after the one that holds `at` have a partition already.
CREATE FUNCTION months_ahead(at date) RETURNS integer
    LANGUAGE sql STABLE
    RETURN (SELECT count(*)::integer
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = 'push_notifications'::regclass
              AND to_date(right(c.relname, 7), 'YYYY"m"MM') > date_trunc('month', at));

-- The month before is made too, for a host whose clock is behind.
SELECT create_month_partitions((now() AT TIME ZONE 'UTC' - interval '1 month')::date, 5);
