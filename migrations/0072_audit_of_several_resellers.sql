-- What was cancelled of several resellers at once is about the lane, and each of them finds it among its own activity: along this index, and not
-- through all that was ever done to the lane. Making it reads the log once, and changes by hand wait for that; it is short itself.
SET LOCAL lock_timeout = '5s';

CREATE INDEX audit_log_of_resellers ON audit_log (id) WHERE subject = 'lane/reseller' AND details ? 'resellers';
