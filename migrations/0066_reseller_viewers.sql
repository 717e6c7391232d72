-- A key of the role reseller-viewer sees what its reseller has and changes nothing. Not validated: the rows there are kept to the narrower
-- constraints until now. Replicas from before cannot read such a key and refuse it.
SET LOCAL lock_timeout = '5s';

ALTER TABLE api_keys DROP CONSTRAINT roles_are_known;
ALTER TABLE api_keys ADD CONSTRAINT roles_are_known
    CHECK (roles <@ ARRAY ['ingest', 'viewer', 'operator', 'admin', 'embedder', 'reseller', 'reseller-viewer']) NOT VALID;
ALTER TABLE api_keys DROP CONSTRAINT a_reseller_key_names_its_reseller;
ALTER TABLE api_keys ADD CONSTRAINT a_reseller_key_names_its_reseller
    CHECK ((reseller_id IS NOT NULL) = (roles IN (ARRAY ['reseller'], ARRAY ['reseller-viewer']))
        AND (reseller_id IS NOT NULL) = (roles && ARRAY ['reseller', 'reseller-viewer'])) NOT VALID;
