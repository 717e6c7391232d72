-- What each process had counted at the end of each minute, so that operators see an hour of a lane without a system of metrics. Kept for an hour.
SET LOCAL lock_timeout = '5s';

CREATE TABLE process_minutes (
    process    uuid        NOT NULL,
    minute     timestamptz NOT NULL,
    started_at timestamptz NOT NULL,
    counters   jsonb       NOT NULL,
    epoch      jsonb,
    PRIMARY KEY (process, minute)
);

CREATE INDEX process_minutes_minute ON process_minutes (minute, process);

COMMENT ON COLUMN process_minutes.counters IS 'Since its start, as it reported them last within the minute.';
COMMENT ON COLUMN process_minutes.epoch IS 'The epoch in which it led the push lane, if it did.';

-- A trigger, so that what processes of an earlier version report is kept too.
CREATE FUNCTION note_process_minute() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO process_minutes AS m (process, minute, started_at, counters, epoch)
    VALUES (NEW.id, date_trunc('minute', NEW.beat_at), NEW.started_at, NEW.state -> 'counters', NEW.state -> 'leading')
    ON CONFLICT (process, minute) DO UPDATE
    SET counters = excluded.counters,
        epoch = CASE WHEN jsonb_typeof(excluded.epoch) = 'number' THEN excluded.epoch ELSE m.epoch END;
    RETURN NULL;
END
$$;

CREATE TRIGGER processes_minute
    AFTER INSERT OR UPDATE ON processes
    FOR EACH ROW
    WHEN (jsonb_typeof(NEW.state -> 'counters') = 'object')
    EXECUTE FUNCTION note_process_minute();
