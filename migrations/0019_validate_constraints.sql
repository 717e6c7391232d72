-- Looks at the rows of before, while everybody goes on reading and writing them.
SET LOCAL lock_timeout = '5s';

ALTER TABLE dead_letters VALIDATE CONSTRAINT state_is_known;
ALTER TABLE dead_letters VALIDATE CONSTRAINT a_resolution_is_signed;
ALTER TABLE dead_letters VALIDATE CONSTRAINT discarding_has_a_reason;
ALTER TABLE push_notifications VALIDATE CONSTRAINT replays_are_counted;
