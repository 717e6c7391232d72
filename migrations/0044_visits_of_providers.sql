-- A visit to the console begins with an API key or with a provider of OpenID Connect. Of the latter the row has who it is and what that person
-- may, as the provider said when the visit began: there is nothing else to read it from later.
SET LOCAL lock_timeout = '5s';

ALTER TABLE visits
    ALTER COLUMN api_key_id DROP NOT NULL,
    ADD COLUMN issuer text,
    ADD COLUMN subject text,
    ADD COLUMN name text,
    ADD COLUMN roles text[],
    -- When the person last showed the provider who it is, if that says so.
    ADD COLUMN authenticated_at timestamptz,
    -- A visit with a key although people sign in with a provider.
    ADD COLUMN break_glass boolean NOT NULL DEFAULT false,
    -- Not validated: the rows there are have a key, and are deleted within days.
    ADD CONSTRAINT a_visit_is_of_a_key_or_of_a_provider CHECK (
        (
            api_key_id IS NOT NULL
            AND issuer IS NULL AND subject IS NULL AND name IS NULL AND roles IS NULL AND authenticated_at IS NULL
        ) OR (
            api_key_id IS NULL AND NOT break_glass
            AND issuer IS NOT NULL AND subject IS NOT NULL AND name IS NOT NULL
            AND roles IS NOT NULL AND cardinality(roles) > 0
        )
    ) NOT VALID;
