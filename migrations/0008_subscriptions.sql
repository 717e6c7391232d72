-- Where a reseller wants its notifications, with which secrets they are signed, and how many it may get.
SET LOCAL lock_timeout = '5s';

CREATE TABLE subscriptions (
    id                     uuid        PRIMARY KEY,
    reseller_id            text        NOT NULL,
    description            text        NOT NULL DEFAULT '',
    url                    text        NOT NULL,
    event_types            text[]      NOT NULL,
    email                  text        NOT NULL,
    state                  text        NOT NULL,
    state_reason           text        NOT NULL,
    state_changed_at       timestamptz NOT NULL,
    paused_at              timestamptz,
    timeout_millis         integer,
    daily_quota            integer,
    requests_per_second    integer,
    failing_since          timestamptz,
    last_failure_at        timestamptz,
    verification_due_at    timestamptz,
    verification_attempts  integer     NOT NULL DEFAULT 0,
    verification_error     text,
    verified_at            timestamptz,
    version                bigint      NOT NULL DEFAULT 1,
    created_at             timestamptz NOT NULL,
    updated_at             timestamptz NOT NULL,
    deleted_at             timestamptz,
    CONSTRAINT state_is_known CHECK (state IN ('PENDING_VERIFICATION', 'ACTIVE', 'DEGRADED', 'DEACTIVATED')),
    CONSTRAINT reseller_is_given CHECK (reseller_id <> ''),
    CONSTRAINT something_is_selected CHECK (cardinality(event_types) > 0),
    CONSTRAINT timeout_is_positive CHECK (timeout_millis > 0),
    CONSTRAINT quota_is_positive CHECK (daily_quota > 0),
    CONSTRAINT rate_is_positive CHECK (requests_per_second > 0),
    CONSTRAINT degraded_is_failing CHECK (state <> 'DEGRADED' OR failing_since IS NOT NULL)
) WITH (fillfactor = 50);

COMMENT ON COLUMN subscriptions.event_types IS
    'The filter: event type names, prefixes such as domain.*, or * for all; an event matches when one of them does.';
COMMENT ON COLUMN subscriptions.timeout_millis IS 'NULL here and in the two below: the configured default.';
COMMENT ON COLUMN subscriptions.failing_since IS 'Of the first failed attempt since the last success.';
COMMENT ON COLUMN subscriptions.version IS
    'Grows with every change of what a delivery needs to know: the endpoint, its secrets, its limits.';
COMMENT ON COLUMN subscriptions.deleted_at IS 'Kept for the records; to everybody else it does not exist.';

CREATE INDEX subscriptions_reseller ON subscriptions (reseller_id, id) WHERE deleted_at IS NULL;
CREATE INDEX subscriptions_failing ON subscriptions (failing_since)
    WHERE failing_since IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX subscriptions_unverified ON subscriptions (verification_due_at)
    WHERE verification_due_at IS NOT NULL AND deleted_at IS NULL;

CREATE TABLE signing_secrets (
    id              uuid        PRIMARY KEY,
    subscription_id uuid        NOT NULL REFERENCES subscriptions (id),
    sealed          bytea       NOT NULL,
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz,
    revoked_at      timestamptz
);

COMMENT ON COLUMN signing_secrets.sealed IS 'Encrypted with the key of the configuration; the plain secret is stored nowhere.';
COMMENT ON COLUMN signing_secrets.expires_at IS 'Set by a rotation: until then both the old and the new one sign.';

CREATE INDEX signing_secrets_subscription ON signing_secrets (subscription_id, created_at);

-- Whoever delivers keeps what it knows of a subscription for as long as the version stays the same.
CREATE FUNCTION count_subscription_version() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    NEW.version := OLD.version + 1;
    RETURN NEW;
END
$$;

CREATE TRIGGER subscriptions_version
    BEFORE UPDATE ON subscriptions
    FOR EACH ROW
    WHEN ((OLD.url, OLD.timeout_millis, OLD.deleted_at, OLD.version)
          IS DISTINCT FROM (NEW.url, NEW.timeout_millis, NEW.deleted_at, NEW.version))
    EXECUTE FUNCTION count_subscription_version();

CREATE FUNCTION secret_changes_version() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE subscriptions SET version = version + 1 WHERE id = NEW.subscription_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER signing_secrets_version
    AFTER INSERT OR UPDATE ON signing_secrets
    FOR EACH ROW
    EXECUTE FUNCTION secret_changes_version();

-- What a subscription has used of its daily quota. One row that is only ever charged, under its lock: however many
-- replicas charge at once, no place is given away twice.
CREATE TABLE subscription_budgets (
    subscription_id uuid    PRIMARY KEY REFERENCES subscriptions (id),
    day             date    NOT NULL,
    used            bigint  NOT NULL,
    quota           integer NOT NULL
) WITH (fillfactor = 50);

COMMENT ON COLUMN subscription_budgets.used IS
    'Places taken from the beginning of the day on; those past the quota lie on the following days.';

CREATE TABLE subscription_paces (
    subscription_id uuid        PRIMARY KEY REFERENCES subscriptions (id),
    next_slot_at    timestamptz NOT NULL,
    asked_at        timestamptz NOT NULL,
    span            interval    NOT NULL
) WITH (fillfactor = 50);

COMMENT ON TABLE subscription_paces IS 'Requests per second: every request has a slot of its own, given out in batches.';

CREATE TABLE quota_requests (
    id              uuid        PRIMARY KEY,
    subscription_id uuid        NOT NULL REFERENCES subscriptions (id),
    reseller_id     text        NOT NULL,
    requested       integer     NOT NULL,
    reason          text        NOT NULL,
    status          text        NOT NULL DEFAULT 'REQUESTED',
    granted         integer,
    note            text,
    decided_by      text,
    created_at      timestamptz NOT NULL,
    decided_at      timestamptz,
    CONSTRAINT status_is_known CHECK (status IN ('REQUESTED', 'APPROVED', 'DENIED')),
    CONSTRAINT requested_is_positive CHECK (requested > 0),
    CONSTRAINT a_decision_is_signed
        CHECK ((status = 'REQUESTED') = (decided_at IS NULL) AND (decided_at IS NULL) = (decided_by IS NULL)),
    CONSTRAINT an_approval_grants CHECK ((status = 'APPROVED') = (granted IS NOT NULL))
);

CREATE UNIQUE INDEX quota_requests_open ON quota_requests (subscription_id) WHERE status = 'REQUESTED';
CREATE INDEX quota_requests_reseller ON quota_requests (reseller_id, id);
