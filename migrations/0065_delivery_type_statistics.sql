-- Deliveries in numbers by event type, and how long after their event they were delivered. The rows go with those of their hour, so that nothing
-- else has to know of them.
--
-- Versions from before count nothing here.
SET LOCAL lock_timeout = '5s';

CREATE TABLE delivery_type_statistics (
    subscription_id uuid        NOT NULL,
    hour            timestamptz NOT NULL,
    event_type      text        NOT NULL,
    attempts        bigint      NOT NULL,
    delivered       bigint      NOT NULL,
    failed          bigint      NOT NULL,
    retried         bigint      NOT NULL,
    delays          jsonb       NOT NULL,
    PRIMARY KEY (subscription_id, hour, event_type),
    FOREIGN KEY (subscription_id, hour) REFERENCES delivery_statistics ON DELETE CASCADE
) WITH (fillfactor = 50);

COMMENT ON COLUMN delivery_type_statistics.delays IS
    'Deliveries by the time since their event, but for those that were sent again: bucket i counts those of less than 2^(i/2) milliseconds that bucket i - 1 does not. Empty buckets are left out.';
