-- The address that a subscription's mails went to before the present one, which may not be confirmed.
SET LOCAL lock_timeout = '5s';

ALTER TABLE subscriptions ADD COLUMN previous_email text;

COMMENT ON COLUMN subscriptions.previous_email IS
    'Where its mails went before email was changed: told of changes until email is confirmed.';
