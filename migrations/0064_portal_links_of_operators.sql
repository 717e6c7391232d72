-- Operators make links to see what a reseller sees. One who has signed in with a provider has no key: such a link stands without one.
--
-- Versions from before take no such link: they fail when it is opened, and do not find its visit.
SET LOCAL lock_timeout = '5s';

ALTER TABLE portal_links ADD COLUMN made_by_operator text;
ALTER TABLE portal_links ALTER COLUMN api_key_id DROP NOT NULL;
ALTER TABLE portal_links ADD CONSTRAINT a_key_or_an_operator_made_it
    CHECK (api_key_id IS NOT NULL OR made_by_operator IS NOT NULL) NOT VALID;

ALTER TABLE portal_visits ADD COLUMN made_by_operator text;
ALTER TABLE portal_visits ALTER COLUMN api_key_id DROP NOT NULL;
ALTER TABLE portal_visits ADD CONSTRAINT a_key_or_an_operator_made_it
    CHECK (api_key_id IS NOT NULL OR made_by_operator IS NOT NULL) NOT VALID;

COMMENT ON COLUMN portal_links.made_by_operator IS 'The operator who made it, as the audit log calls it; NULL of a reseller''s own and of an embedder''s.';
COMMENT ON COLUMN portal_visits.made_by_operator IS 'The operator who made its link, as the audit log calls it.';
