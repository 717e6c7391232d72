-- As 0031_push_reasons.sql: which class of failures withholds a subscription.
SET LOCAL lock_timeout = '5s';

ALTER TABLE subscription_sidelines
    ADD CONSTRAINT outage_class_is_known CHECK (outage_class IN ('CONNECT', 'DNS', 'TIMEOUT', 'TLS')) NOT VALID;
