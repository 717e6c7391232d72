-- Through which values of the provider's claim a person has the role of a visit. The configuration may take such a value away while the visit
-- goes on, which then is over. Of visits that began before there is none, and their people sign in again.
SET LOCAL lock_timeout = '5s';

ALTER TABLE visits
    ADD COLUMN granted_by text[];
