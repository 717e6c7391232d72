-- The tallies of the last hours are found without the older ones. By itself, before dead letters are locked for what follows: changes of
-- tallies wait for it, which only statements that write dead letters make.
SET LOCAL lock_timeout = '5s';

CREATE INDEX dead_letter_tallies_hour ON dead_letter_tallies (hour, state);
