-- Visits of people to the pages of the operator API. A visit begins with an API key and may what that key may; the cookie that shows it is kept
-- as a digest, like the key itself.
SET LOCAL lock_timeout = '5s';

CREATE TABLE visits (
    id uuid PRIMARY KEY,
    digest bytea NOT NULL UNIQUE CONSTRAINT a_digest_has_32_bytes CHECK (octet_length(digest) = 32),
    api_key_id uuid NOT NULL REFERENCES api_keys (id),
    began_at timestamptz NOT NULL,
    -- To the minute: a page that is looked at does not write a row each time.
    last_seen_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    ended_at timestamptz
);

-- Those that are over are deleted by time.
CREATE INDEX visits_end ON visits (ends_at);
