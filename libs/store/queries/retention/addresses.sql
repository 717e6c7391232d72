-- One that is named again in this moment is asked to be confirmed again, when its first mail waits.
DELETE FROM email_addresses WHERE (reseller_id, address) IN (
    SELECT a.reseller_id, a.address FROM email_addresses a
    WHERE a.created_at < $1
      AND NOT EXISTS (SELECT FROM subscriptions s
                      WHERE s.reseller_id = a.reseller_id AND lower(s.email) = a.address AND s.deleted_at IS NULL)
      -- Its last mails may wait.
      AND NOT EXISTS (SELECT FROM subscriptions s
                      WHERE s.reseller_id = a.reseller_id AND lower(s.email) = a.address
                        AND s.deleted_at > $1::timestamptz)
      -- It is told of changes until the address after it is confirmed.
      AND NOT EXISTS (SELECT FROM subscriptions s
                      WHERE s.reseller_id = a.reseller_id AND lower(s.previous_email) = a.address
                        AND s.deleted_at IS NULL
                        AND NOT EXISTS (SELECT FROM email_addresses n
                                        WHERE n.reseller_id = s.reseller_id AND n.address = lower(s.email)
                                          AND n.confirmed_at IS NOT NULL))
    LIMIT $2 FOR UPDATE SKIP LOCKED)
