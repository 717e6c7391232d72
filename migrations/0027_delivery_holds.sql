-- Classes of failures that are held because most endpoints fail in one way at once, and whom that concerns.
SET LOCAL lock_timeout = '5s';

ALTER TABLE holds
    ADD COLUMN leased_until timestamptz,
    DROP CONSTRAINT class_is_known,
    ADD CONSTRAINT class_is_known CHECK (class IN ('SWRVE', 'CONNECT', 'DNS', 'TIMEOUT', 'TLS')) NOT VALID,
    ADD CONSTRAINT what_engines_hold_is_leased CHECK ((class = 'SWRVE') = (leased_until IS NULL)) NOT VALID;

COMMENT ON COLUMN holds.leased_until IS
    'Until when the row is true unless an engine that holds the class says so again; nothing for the push lane, where the leader does.';

ALTER TABLE subscription_sidelines
    ADD COLUMN outage_class text,
    ADD COLUMN outage_until timestamptz,
    ADD CONSTRAINT an_outage_has_an_end CHECK ((outage_class IS NULL) = (outage_until IS NULL)) NOT VALID;

COMMENT ON COLUMN subscription_sidelines.outage_until IS
    'Until when nothing of it is promoted, since it failed in a class that is held; an engine renews it and sends the probes.';
