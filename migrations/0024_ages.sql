-- What is old goes by the database's clock, and in steps that hold up no reader and no writer.
SET LOCAL lock_timeout = '5s';

-- The months of both lanes before `before`, named by the partition that decides whether they may go; whatever the clock of the
-- caller says, the present month is not old.
CREATE FUNCTION old_month_partitions(before date) RETURNS SETOF text
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT c.relname::text
    FROM (VALUES (1, 'push_notifications'), (2, 'notifications')) AS p(place, parent)
    JOIN pg_inherits i ON i.inhparent = p.parent::regclass JOIN pg_class c ON c.oid = i.inhrelid
    WHERE to_date(right(c.relname, 7), 'YYYY"m"MM') < least(date_trunc('month', before), date_trunc('month', now()))
    ORDER BY p.place, c.relname;
END;

-- Drops one of them with all that belongs to it, unless something in it has not ended; tells whether it did. While it waits for
-- its locks every statement of the lane waits behind it, so it gives way after a moment, as to a backup that reads for an hour,
-- and is called again. It replaces drop_month_partitions, which stays for services of before.
CREATE FUNCTION drop_month_partition(partition text) RETURNS boolean
    LANGUAGE plpgsql
    SET lock_timeout = '100ms'
AS $$
DECLARE
    guarded  text := left(partition, -9);
    suffix   text := right(partition, 8);
    -- Who writes locks the parents in the order in which its statement names them: that of the life of a row.
    together text[] := CASE guarded
        WHEN 'notifications' THEN ARRAY ['events', 'notifications', 'delivery_attempts']
        WHEN 'push_notifications' THEN ARRAY ['push_notifications', 'send_attempts'] END;
    parent   text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('postrider.partitions'));
    -- First without a strong lock, so that a month that must stay costs nothing; then once more with it, since a row may have
    -- changed in between. Dropping a partition locks its parent too: that lock comes first, as it does in every other
    -- statement, or the two would wait for each other.
    IF to_regclass(partition) IS NULL OR has_unfinished_rows(partition) THEN
        RETURN false;
    END IF;
    FOREACH parent IN ARRAY together LOOP
        EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', parent);
    END LOOP;
    IF has_unfinished_rows(partition) THEN
        RETURN false;
    END IF;
    FOREACH parent IN ARRAY together LOOP
        EXECUTE format('DROP TABLE IF EXISTS %I', parent || '_' || suffix);
    END LOOP;
    RETURN true;
END
$$;

-- What is forgotten is found by these, and the references of what is forgotten by those of the subscriptions.
CREATE INDEX replays_subscription ON replays (subscription_id, id);
CREATE INDEX emails_subscription ON emails (subscription_id);
CREATE INDEX quota_requests_subscription ON quota_requests (subscription_id);
CREATE INDEX signing_secrets_ended ON signing_secrets (least(expires_at, revoked_at))
    WHERE expires_at IS NOT NULL OR revoked_at IS NOT NULL;
CREATE INDEX subscriptions_deleted ON subscriptions (deleted_at) WHERE deleted_at IS NOT NULL;
