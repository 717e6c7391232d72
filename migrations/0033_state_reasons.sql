-- As 0031_push_reasons.sql: why a subscription has its state.
SET LOCAL lock_timeout = '5s';

ALTER TABLE subscriptions
    ADD CONSTRAINT state_reason_is_known CHECK (state_reason IN (
        'CREATED', 'VERIFIED', 'FAILING', 'RECOVERED', 'REDIRECTED', 'GONE', 'BY_RESELLER', 'ENDPOINT_CHANGED',
        'VERIFICATION_REQUESTED')) NOT VALID;
