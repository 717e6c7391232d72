-- A replay says what the endpoint takes that it is to, whichever resellers have subscriptions there: these are found by it, and not among all. Making
-- the index reads the subscriptions once, and changes of them wait for that.
SET LOCAL lock_timeout = '5s';

CREATE INDEX subscriptions_endpoint ON subscriptions (endpoint_of(url)) WHERE deleted_at IS NULL;
