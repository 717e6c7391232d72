-- What each day of a quota was charged, for the reseller who asks for another quota. A trigger on the change of the day, so that no claim costs
-- more on any other occasion, and days that processes of an earlier version charged are kept too.
SET LOCAL lock_timeout = '5s';

CREATE TABLE quota_days (
    subscription_id uuid    NOT NULL REFERENCES subscriptions (id) ON DELETE CASCADE,
    day             date    NOT NULL,
    used            bigint  NOT NULL,
    quota           integer NOT NULL,
    PRIMARY KEY (subscription_id, day)
);

COMMENT ON TABLE quota_days IS 'Days that have ended; the present one is in subscription_budgets. Kept for 35 days.';

CREATE FUNCTION note_quota_day() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO quota_days AS d (subscription_id, day, used, quota)
    VALUES (OLD.subscription_id, OLD.day, least(OLD.used, OLD.quota), OLD.quota)
    ON CONFLICT (subscription_id, day) DO UPDATE SET used = greatest(d.used, excluded.used), quota = excluded.quota;
    DELETE FROM quota_days WHERE subscription_id = OLD.subscription_id AND day < NEW.day - 35;
    RETURN NULL;
END
$$;

CREATE TRIGGER subscription_budgets_day
    AFTER UPDATE ON subscription_budgets
    FOR EACH ROW
    WHEN (NEW.day > OLD.day)
    EXECUTE FUNCTION note_quota_day();
