-- Monthly partitions for the tables of both lanes. A month of events goes when it is old and no notification in it is
-- still due.
SET LOCAL lock_timeout = '5s';

CREATE OR REPLACE FUNCTION create_month_partitions(first_month date, months integer) RETURNS integer
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
        FOREACH parent IN ARRAY ARRAY ['push_notifications', 'send_attempts',
                                       'events', 'notifications', 'delivery_attempts'] LOOP
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

-- Several questions, because each has a partial index of its own; one question for all four statuses would read the
-- whole month.
CREATE FUNCTION has_unfinished_rows(child text) RETURNS boolean
    LANGUAGE plpgsql
AS $$
DECLARE
    unfinished boolean;
BEGIN
    EXECUTE format(
        'SELECT EXISTS (SELECT FROM %1$I WHERE status = ''PENDING'')'
        ' OR EXISTS (SELECT FROM %1$I WHERE status = ''SCHEDULED'')'
        ' OR EXISTS (SELECT FROM %1$I WHERE status = ''RETRY'')'
        ' OR EXISTS (SELECT FROM %1$I WHERE status = ''IN_MEMORY'')', child) INTO unfinished;
    RETURN unfinished;
END
$$;

CREATE OR REPLACE FUNCTION drop_month_partitions(before date) RETURNS SETOF text
    LANGUAGE plpgsql
    SET lock_timeout = '2s'
AS $$
DECLARE
    suffix   text;
    guarded  text;
    together text[];
    parent   text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('postrider.partitions'));
    FOREACH guarded IN ARRAY ARRAY ['push_notifications', 'notifications'] LOOP
        -- Whoever writes locks the parents in the order in which its statement names them: that of the life of a row.
        together := CASE guarded
            WHEN 'notifications' THEN ARRAY ['events', 'notifications', 'delivery_attempts']
            ELSE ARRAY ['push_notifications', 'send_attempts'] END;
        FOR suffix IN
            SELECT right(c.relname, 8)
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = guarded::regclass
              -- Whatever the clock of the caller says, the present month is not old.
              AND to_date(right(c.relname, 7), 'YYYY"m"MM')
                  < least(date_trunc('month', before), date_trunc('month', now()))
            ORDER BY 1
        LOOP
            -- First without a strong lock, so that a month that must stay costs nobody anything; then once more with
            -- it, since a row may have changed in between. Dropping a partition locks its parent too: that lock comes
            -- first, as it does in every other statement, or the two would wait for each other.
            CONTINUE WHEN has_unfinished_rows(guarded || '_' || suffix);
            FOREACH parent IN ARRAY together LOOP
                EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', parent);
            END LOOP;
            CONTINUE WHEN has_unfinished_rows(guarded || '_' || suffix);
            FOREACH parent IN ARRAY together LOOP
                EXECUTE format('DROP TABLE IF EXISTS %I', parent || '_' || suffix);
            END LOOP;
            RETURN NEXT guarded || '_' || suffix;
        END LOOP;
    END LOOP;
END
$$;

DROP FUNCTION has_unfinished_pushes(text);

-- The tables of a lane are made together, but an upgrade may have found one of them alone: the least counts.
CREATE OR REPLACE FUNCTION months_ahead(at date) RETURNS integer
    LANGUAGE sql STABLE
    RETURN (SELECT min(ahead)::integer
            FROM (SELECT p.parent, count(c.oid) AS ahead
                  FROM (VALUES ('push_notifications'), ('notifications')) AS p(parent)
                  LEFT JOIN pg_inherits i ON i.inhparent = p.parent::regclass
                  LEFT JOIN pg_class c
                      ON c.oid = i.inhrelid AND to_date(right(c.relname, 7), 'YYYY"m"MM') > date_trunc('month', at)
                  GROUP BY p.parent) AS lanes);

SELECT create_month_partitions((now() AT TIME ZONE 'UTC' - interval '1 month')::date, 5);
