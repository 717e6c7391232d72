-- The HTTP status that Swrve answered an attempt with. What an attempt has recorded so far is the code of Swrve's own body where there was one, which
-- hides the status. Null for attempts of before, and for those of a version that does not write it.
SET LOCAL lock_timeout = '5s';

ALTER TABLE send_attempts ADD COLUMN response_status smallint;

COMMENT ON COLUMN send_attempts.response_status IS 'HTTP status of the answer; null where there was none, and for attempts of before.';
COMMENT ON COLUMN send_attempts.swrve_error_code IS 'The code in the body of Swrve''s answer, else its HTTP status.';
