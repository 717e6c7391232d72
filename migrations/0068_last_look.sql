-- Since when all is well, or is not: what the last look at the installation found, and since when each look has found the same.
SET LOCAL lock_timeout = '5s';

CREATE TABLE last_look (
    one boolean PRIMARY KEY DEFAULT true CONSTRAINT there_is_one CHECK (one),
    healthy boolean NOT NULL,
    since timestamptz NOT NULL,
    looked_at timestamptz NOT NULL
);

COMMENT ON COLUMN last_look.since IS 'The first of the looks that found the same, one after the other and without a gap.';
