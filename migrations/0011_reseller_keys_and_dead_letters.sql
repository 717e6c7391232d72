-- Resellers get API keys of their own, and notifications that failed a place among the dead letters.
SET LOCAL lock_timeout = '5s';

ALTER TABLE api_keys ADD COLUMN reseller_id text;
ALTER TABLE api_keys DROP CONSTRAINT roles_are_known;
ALTER TABLE api_keys ADD CONSTRAINT roles_are_known
    CHECK (roles <@ ARRAY ['ingest', 'viewer', 'operator', 'admin', 'reseller']);
-- A reseller's key is nothing else: no role of the house may come with it.
ALTER TABLE api_keys ADD CONSTRAINT a_reseller_key_names_its_reseller
    CHECK ((reseller_id IS NOT NULL) = (roles = ARRAY ['reseller']) AND (reseller_id IS NOT NULL) = ('reseller' = ANY (roles)));

ALTER TABLE dead_letters ADD COLUMN notification_id uuid;
ALTER TABLE dead_letters ADD COLUMN subscription_id uuid;
ALTER TABLE dead_letters ADD COLUMN event_type text;
ALTER TABLE dead_letters DROP CONSTRAINT lane_is_known;
ALTER TABLE dead_letters ADD CONSTRAINT lane_is_known CHECK (lane IN ('push', 'reseller')) NOT VALID;
ALTER TABLE dead_letters VALIDATE CONSTRAINT lane_is_known;
ALTER TABLE dead_letters DROP CONSTRAINT a_failure_names_its_push;
ALTER TABLE dead_letters ADD CONSTRAINT a_failure_names_what_failed
    CHECK (reason NOT IN ('FAILED', 'GIVEN_UP') OR push_id IS NOT NULL OR notification_id IS NOT NULL) NOT VALID;
ALTER TABLE dead_letters VALIDATE CONSTRAINT a_failure_names_what_failed;

CREATE INDEX dead_letters_notification ON dead_letters (notification_id) WHERE notification_id IS NOT NULL;
