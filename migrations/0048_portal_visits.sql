-- Links that open the dashboard of a reseller once, and the visits that they begin. Of both only digests are kept, as of API keys.
SET LOCAL lock_timeout = '5s';

CREATE TABLE portal_links (
    id uuid PRIMARY KEY,
    digest bytea NOT NULL UNIQUE CONSTRAINT a_digest_has_32_bytes CHECK (octet_length(digest) = 32),
    reseller_id text NOT NULL,
    person_id text NOT NULL,
    person_name text NOT NULL,
    -- What its visit may do beside looking.
    capabilities text[] NOT NULL CONSTRAINT capabilities_are_known
        CHECK (capabilities <@ ARRAY ['bodies', 'manage', 'resend', 'secrets.reveal', 'secrets.rotate', 'quota']),
    -- The key that made it. Without that key neither the link nor its visit is worth anything.
    api_key_id uuid NOT NULL REFERENCES api_keys (id),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    visit_minutes integer NOT NULL CONSTRAINT a_visit_lasts_a_while CHECK (visit_minutes > 0),
    landing text NOT NULL,
    -- The one origin whose pages may frame the visit; without one it is a tab of its own.
    parent_origin text,
    -- Where its person comes from and can have another link made.
    return_url text,
    theme text CONSTRAINT theme_is_known CHECK (theme IN ('light', 'dark')),
    locale text,
    time_zone text,
    -- When the person last showed who it is, as the one says who made the link.
    authenticated_at timestamptz
);

-- Those that are over are deleted by time.
CREATE INDEX portal_links_end ON portal_links (expires_at);

CREATE TABLE portal_visits (
    id uuid PRIMARY KEY,
    digest bytea NOT NULL UNIQUE CONSTRAINT a_digest_has_32_bytes CHECK (octet_length(digest) = 32),
    reseller_id text NOT NULL,
    person_id text NOT NULL,
    person_name text NOT NULL,
    capabilities text[] NOT NULL CONSTRAINT capabilities_are_known
        CHECK (capabilities <@ ARRAY ['bodies', 'manage', 'resend', 'secrets.reveal', 'secrets.rotate', 'quota']),
    api_key_id uuid NOT NULL REFERENCES api_keys (id),
    began_at timestamptz NOT NULL,
    -- To the minute: a page that is looked at does not write a row each time.
    last_seen_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    ended_at timestamptz,
    landing text NOT NULL,
    parent_origin text,
    return_url text,
    theme text CONSTRAINT theme_is_known CHECK (theme IN ('light', 'dark')),
    locale text,
    time_zone text,
    authenticated_at timestamptz
);

CREATE INDEX portal_visits_end ON portal_visits (ends_at);
-- The visits of a reseller, and those of one of its people.
CREATE INDEX portal_visits_of_person ON portal_visits (reseller_id, person_id) WHERE ended_at IS NULL;
