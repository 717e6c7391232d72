-- By which names the acts of a reseller are signed is asked for with each page of its activity: from its own visits, ended ones among them, and not
-- from those of all resellers. Making the index reads the visits once, and those that begin wait for that.
SET LOCAL lock_timeout = '5s';

CREATE INDEX portal_visits_of_reseller ON portal_visits (reseller_id) WHERE made_by_operator IS NULL;
