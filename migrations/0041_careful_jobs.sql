-- Jobs on dead letters that go about it with care: at most so many, the newest first, a few of them before the others, and a share of failures
-- that stops them. What a job of before has is what the defaults say.
SET LOCAL lock_timeout = '5s';

ALTER TABLE dead_letter_jobs
    ADD COLUMN letters_max    integer,
    ADD COLUMN newest_first   boolean NOT NULL DEFAULT false,
    ADD COLUMN canary         integer,
    ADD COLUMN canary_due     uuid[]  NOT NULL DEFAULT '{}',
    ADD COLUMN canary_passed  boolean NOT NULL DEFAULT false,
    ADD COLUMN pause_above    integer,
    ADD COLUMN failed_again   bigint  NOT NULL DEFAULT 0,
    ADD COLUMN judged_to      timestamptz,
    ADD COLUMN judged_from    timestamptz,
    ADD COLUMN judged_done    bigint  NOT NULL DEFAULT 0,
    ADD COLUMN paused_because text,
    ADD COLUMN steps          bigint,
    ADD CONSTRAINT paused_because_is_known CHECK (paused_because IN ('CANARY', 'CANARY_FAILED', 'FAILED_AGAIN')) NOT VALID;

COMMENT ON COLUMN dead_letter_jobs.letters_max IS 'Most dead letters that it looks at; NULL: all.';
COMMENT ON COLUMN dead_letter_jobs.canary IS
    'So many are sent again first; the others wait until it is known what became of those. NULL: all are alike.';
COMMENT ON COLUMN dead_letter_jobs.canary_due IS 'The first pushes and notifications that it has made due.';
COMMENT ON COLUMN dead_letter_jobs.canary_passed IS 'The others need not wait any more.';
COMMENT ON COLUMN dead_letter_jobs.pause_above IS 'It is paused when more than so many percent of what it has replayed failed again; NULL: never.';
COMMENT ON COLUMN dead_letter_jobs.failed_again IS 'How many failed again until judged_to, of what it has replayed after judged_from.';
COMMENT ON COLUMN dead_letter_jobs.judged_from IS 'When it had last got on, or was last told to, before it was resumed; NULL: it was not.';
COMMENT ON COLUMN dead_letter_jobs.judged_done IS 'What done was then.';
COMMENT ON COLUMN dead_letter_jobs.paused_because IS
    'Why a job has paused itself: CANARY (until it is known what became of the first), CANARY_FAILED or FAILED_AGAIN. NULL: an operator did.';
COMMENT ON COLUMN dead_letter_jobs.steps IS 'Of a job with one of these limits: the steps that were taken.';

-- A retry worker of the version before knows none of these limits: its steps on such a job fail, and leave it to one that does.
CREATE FUNCTION refuse_careless_step() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'the job has limits that this version of the retry-worker does not know';
END
$$;

CREATE TRIGGER dead_letter_jobs_careful
    BEFORE UPDATE OF cursor_at ON dead_letter_jobs
    FOR EACH ROW
    WHEN (OLD.steps IS NOT NULL AND NEW.steps IS NOT DISTINCT FROM OLD.steps)
    EXECUTE FUNCTION refuse_careless_step();

-- An operator-api of the version before resumes and cancels such a job without a word about the reason, which would stay.
CREATE FUNCTION forget_pause_reason() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    NEW.paused_because := NULL;
    RETURN NEW;
END
$$;

CREATE TRIGGER dead_letter_jobs_get_on
    BEFORE UPDATE OF status ON dead_letter_jobs
    FOR EACH ROW
    WHEN (NEW.status <> 'PAUSED' AND NEW.paused_because IS NOT NULL)
    EXECUTE FUNCTION forget_pause_reason();
