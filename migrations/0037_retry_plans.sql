-- What a subscription says of its retries: for how long, and whether a refusal is tried again. Engines of an earlier version go by the
-- configured plan alone, so that what they record may end sooner than the subscription says.
SET LOCAL lock_timeout = '5s';

ALTER TABLE subscriptions
    ADD COLUMN retry_plan          text    NOT NULL DEFAULT 'SHORT',
    ADD COLUMN retry_client_errors boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT retry_plan_is_known CHECK (retry_plan IN ('SHORT', 'DAY')) NOT VALID;

COMMENT ON COLUMN subscriptions.retry_plan IS 'SHORT: as reseller.retry says; DAY: for a day, with growing waits.';
COMMENT ON COLUMN subscriptions.retry_client_errors IS 'Whether answers from 400 to 499 are tried again, save 410.';

-- What engines keep of a subscription holds these as well.
CREATE OR REPLACE TRIGGER subscriptions_version
    BEFORE UPDATE ON subscriptions
    FOR EACH ROW
    WHEN ((OLD.url, OLD.timeout_millis, OLD.deleted_at, OLD.retry_plan, OLD.retry_client_errors, OLD.version)
          IS DISTINCT FROM (NEW.url, NEW.timeout_millis, NEW.deleted_at, NEW.retry_plan, NEW.retry_client_errors, NEW.version))
    EXECUTE FUNCTION count_subscription_version();
