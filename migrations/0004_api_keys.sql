-- API keys. Only digests are stored; a revoked key stays, so that its name in old records keeps its meaning.
SET LOCAL lock_timeout = '5s';

CREATE TABLE api_keys (
    id         uuid        PRIMARY KEY,
    name       text        NOT NULL,
    digest     bytea       NOT NULL UNIQUE,
    roles      text[]      NOT NULL,
    created_at timestamptz NOT NULL,
    revoked_at timestamptz,
    CONSTRAINT digest_is_sha256 CHECK (octet_length(digest) = 32),
    CONSTRAINT name_is_given CHECK (btrim(name) <> ''),
    CONSTRAINT roles_are_given CHECK (cardinality(roles) > 0),
    CONSTRAINT roles_are_known CHECK (roles <@ ARRAY ['ingest', 'viewer', 'operator', 'admin'])
);
