-- Pushes are found by the device that they are for. The index of the parent is valid when every month has its own: those without rows get
-- it here, at once; those with rows get it from `Store::make_indexes`, while they are written to; those to come are made like their parent.
SET LOCAL lock_timeout = '5s';

-- A hash, so that no second copy of a device's key is kept. Sorted by time, which no other index does: one by the identifier could take its
-- place in the plan of a month that was analysed while it was empty.
CREATE INDEX push_notifications_device ON ONLY push_notifications (hashtextextended(push_key, 0), created_at, id);

DO $$
DECLARE
    child   text;
    is_used boolean;
BEGIN
    FOR child IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'push_notifications'::regclass ORDER BY c.relname
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', child) INTO is_used;
        CONTINUE WHEN is_used;
        EXECUTE format('CREATE INDEX %I ON %I (hashtextextended(push_key, 0), created_at, id)', child || '_device', child);
        EXECUTE format('ALTER INDEX push_notifications_device ATTACH PARTITION %I', child || '_device');
    END LOOP;
END
$$;
