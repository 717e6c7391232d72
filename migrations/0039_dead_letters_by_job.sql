-- What a job has sent again is found by the job. With dead letters in the table the index is made by `Store::make_indexes`, while they are
-- written.
SET LOCAL lock_timeout = '5s';

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM dead_letters) THEN
        CREATE INDEX dead_letters_job ON dead_letters (job_id, id) WHERE job_id IS NOT NULL;
    END IF;
END
$$;
