-- As 0031_push_reasons.sql: why a recovery ended.
SET LOCAL lock_timeout = '5s';

ALTER TABLE dead_letter_jobs
    ADD CONSTRAINT ended_because_is_known CHECK (ended_because IN ('FAILING', 'INACTIVE', 'SWITCHED_OFF')) NOT VALID;
