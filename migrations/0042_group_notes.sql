-- What operators note of a kind of dead letters: what is known of it, who looks after it, and until when that holds.
SET LOCAL lock_timeout = '5s';

CREATE TABLE dead_letter_group_notes (
    lane        text        NOT NULL,
    fingerprint text        NOT NULL,
    target      text        NOT NULL,
    note        text,
    owner       text,
    until       timestamptz,
    noted_by    text        NOT NULL,
    noted_at    timestamptz NOT NULL,
    PRIMARY KEY (lane, fingerprint, target),
    CONSTRAINT something_is_noted CHECK (note IS NOT NULL OR owner IS NOT NULL)
);
