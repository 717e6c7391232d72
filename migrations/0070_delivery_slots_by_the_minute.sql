-- How full the slots of the reseller lane were in each minute: what is taken of them is no counter, so that it needs columns beside those.
SET LOCAL lock_timeout = '5s';

ALTER TABLE process_minutes ADD COLUMN in_flight bigint, ADD COLUMN slots bigint;

COMMENT ON COLUMN process_minutes.in_flight IS 'Most attempts to deliver a notification that waited for their answer at one of its reports of the minute.';
COMMENT ON COLUMN process_minutes.slots IS 'How many it has room for. Null where it delivers none, or is of a version that did not say.';

CREATE OR REPLACE FUNCTION note_process_minute() RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    room  bigint := CASE WHEN jsonb_typeof(NEW.state -> 'deliverySlots') = 'number'
                          THEN nullif((NEW.state ->> 'deliverySlots')::bigint, 0) END;
    taken bigint := CASE WHEN room IS NOT NULL AND jsonb_typeof(NEW.state -> 'deliveriesInFlight') = 'number'
                          THEN (NEW.state ->> 'deliveriesInFlight')::bigint END;
BEGIN
    INSERT INTO process_minutes AS m (process, minute, started_at, counters, epoch, in_flight, slots)
    VALUES (NEW.id, date_trunc('minute', NEW.beat_at), NEW.started_at, NEW.state -> 'counters', NEW.state -> 'leading', taken, room)
    ON CONFLICT (process, minute) DO UPDATE
    SET counters = excluded.counters,
        epoch = CASE WHEN jsonb_typeof(excluded.epoch) = 'number' THEN excluded.epoch ELSE m.epoch END,
        in_flight = greatest(m.in_flight, excluded.in_flight),
        slots = coalesce(excluded.slots, m.slots);
    RETURN NULL;
END
$$;
