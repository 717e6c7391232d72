-- Messages of Web Push filled their pages to seven tenths only, as clients do. No message uses the room: one that replaces another of its topic has another
-- identifier, and so changes an index as well. Millions of them took, and had written, four tenths more pages than they need.
SET LOCAL lock_timeout = '5s';

CREATE OR REPLACE FUNCTION create_webpush_partitions(first_month date, months integer) RETURNS integer
    LANGUAGE plpgsql
    SECURITY DEFINER
    SET search_path = public, pg_temp
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
            -- Room in the pages of clients, since one that connects changes its row and none of its indexes.
            EXECUTE format(
                'CREATE TABLE %I (LIKE %I INCLUDING ALL) WITH (fillfactor = %s, '
                'autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, '
                'autovacuum_vacuum_cost_delay = 1)', child, parent, CASE parent WHEN 'webpush_clients' THEN 70 ELSE 100 END);
            EXECUTE format(
                'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, child,
                month, (month + interval '1 month')::date);
            created := created + 1;
        END LOOP;
    END LOOP;
    RETURN created;
END
$$;

-- Those that exist: rows that come from now on fill their pages. Readers and writers go on, and no month is made or dropped meanwhile.
DO $$
DECLARE
    child regclass;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('postrider.partitions'));
    FOR child IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'webpush_messages'::regclass ORDER BY 1 LOOP
        EXECUTE format('ALTER TABLE %s SET (fillfactor = 100)', child);
    END LOOP;
END
$$;
