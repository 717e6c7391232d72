-- A secret that is sealed again with another key stays the same secret: what engines keep of its subscription holds on, and the row of
-- the subscription is not locked for it.
SET LOCAL lock_timeout = '5s';

CREATE OR REPLACE TRIGGER signing_secrets_version
    AFTER INSERT OR UPDATE OF expires_at, revoked_at ON signing_secrets
    FOR EACH ROW
    EXECUTE FUNCTION secret_changes_version();
