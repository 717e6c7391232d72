-- What failed or was given up is found among all that a subscription was sent. The index of the parent is valid when every partition has its
-- own: those without rows get it here, at once; those with rows get it from `Store::make_indexes`, while they are written to; those to come
-- are made like their parent.
SET LOCAL lock_timeout = '5s';

CREATE INDEX notifications_ended_badly ON ONLY notifications (subscription_id, id) WHERE status IN ('FAILED', 'GIVEN_UP');

DO $$
DECLARE
    child   text;
    is_used boolean;
BEGIN
    FOR child IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'notifications'::regclass ORDER BY c.relname
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', child) INTO is_used;
        CONTINUE WHEN is_used;
        EXECUTE format('CREATE INDEX %I ON %I (subscription_id, id) WHERE status IN (''FAILED'', ''GIVEN_UP'')',
                       child || '_ended_badly', child);
        EXECUTE format('ALTER INDEX notifications_ended_badly ATTACH PARTITION %I', child || '_ended_badly');
    END LOOP;
END
$$;
