-- Resellers are looked for by how their names begin, in either case, and not among the subscriptions of all. Making the index reads these once, and
-- changes of them wait for that.
SET LOCAL lock_timeout = '5s';

CREATE INDEX subscriptions_reseller_name ON subscriptions (lower(reseller_id COLLATE "C")) WHERE deleted_at IS NULL;
