-- What is over a quota or a rate waits in a line, oldest first, and gets no place ahead: places are charged when an
-- attempt is claimed. The line of a subscription needs only to be known, and when to look at it next.
SET LOCAL lock_timeout = '5s';

ALTER TABLE subscription_budgets ADD COLUMN release_at timestamptz, ADD COLUMN changed_at timestamptz;

COMMENT ON COLUMN subscription_budgets.release_at IS
    'When what waits for quota or rate is looked at next; NULL: nothing waits, so that what comes need not wait behind it.';
COMMENT ON COLUMN subscription_budgets.changed_at IS
    'When the limits were last changed: what waits is not spread over the window of that day.';
COMMENT ON COLUMN subscription_budgets.used IS
    'Notifications charged to the day. More than the quota only where an earlier version gave out places of coming days.';

-- One row for each subscription.
CREATE INDEX subscription_budgets_release ON subscription_budgets (release_at) WHERE release_at IS NOT NULL;

COMMENT ON COLUMN notifications.next_attempt_at IS
    'When it is due. For SCHEDULED, which waits in line, when it was accepted: the line is sorted by it.';
COMMENT ON COLUMN notifications.charged_on IS 'The day whose quota it was charged to.';
COMMENT ON COLUMN notifications.slot_at IS 'Unused; an earlier version kept places in the requests per second here.';
