-- A field of an event's data that the schema of its type does not list is refused, dropped or allowed.
SET LOCAL lock_timeout = '5s';

-- Types that are there already, and those that the version before puts in, go on as they were.
ALTER TABLE event_types
    ADD COLUMN unknown_fields text NOT NULL DEFAULT 'ALLOW',
    ADD CONSTRAINT unknown_fields_is_known CHECK (unknown_fields IN ('REFUSE', 'DROP', 'ALLOW')) NOT VALID;

COMMENT ON COLUMN event_types.unknown_fields IS
    'What becomes of a field of a payload that the schema does not list. Without a schema nothing is compared.';

-- The types that came with 0013 refuse such fields: events carry what their type says, and nothing else. The digest is over schema
-- and example as they came: where those are others, the operators of the installation say what the type holds.
UPDATE event_types t
SET unknown_fields = 'REFUSE', updated_at = greatest(now(), t.updated_at + interval '1 microsecond'),
    -- The only objects whose fields were told in words alone.
    schema = CASE t.name WHEN 'domain.dnssec.updated' THEN jsonb_set(t.schema, '{properties,dsRecords,items,properties}',
        '{"keyTag": {"type": "integer"}, "algorithm": {"type": "integer"}, "digestType": {"type": "integer"},
          "digest": {"type": "string"}}') ELSE t.schema END
FROM (VALUES
    ('contact.created', '6f5a015bcc4d80bb'), ('contact.deleted', 'a985f359fa91481e'),
    ('contact.updated', '3b4b93f10500f95e'), ('contact.verification.completed', 'd9234d41bf03c817'),
    ('contact.verification.failed', 'b169775be6e9d743'), ('contact.verification.requested', 'a88a2c16525aca0d'),
    ('domain.authcode.changed', '187d1af130b817e8'), ('domain.autorenew.updated', '71d21b623730a071'),
    ('domain.contacts.updated', 'ce2bd293deac3f15'), ('domain.created', 'e05240c9a83dc92f'),
    ('domain.deleted', '0520c10fd6d58f41'), ('domain.dnssec.updated', '98e7cde55bcf6fa3'),
    ('domain.expired', '81940aac21987894'), ('domain.expiring', 'a79a1642cb938edc'),
    ('domain.lock.disabled', 'b723c52a1667e46d'), ('domain.lock.enabled', 'b723c52a1667e46d'),
    ('domain.nameservers.updated', '2f754f3feb4cad7a'), ('domain.owner.changed', '9fec993de9575fdb'),
    ('domain.renewed', 'e1d5dbf3d144baff'), ('domain.restored', 'bed29cd61698f1db'),
    ('domain.suspended', 'fd4ebcc348a889e6'), ('domain.transfer.approved', '5f0735e693ef6495'),
    ('domain.transfer.cancelled', '5f0735e693ef6495'), ('domain.transfer.completed', '7c099206c4d3522b'),
    ('domain.transfer.failed', '12ce4cbe42eb40f1'), ('domain.transfer.rejected', 'b97ea873c6fbaf94'),
    ('domain.transfer.requested', '4aeee63be3676637'), ('domain.unsuspended', '94f86fbfb151dfbc'),
    ('domain.updated', '0f6cf90a48814165'), ('host.created', 'fcb01aef1251639d'),
    ('host.deleted', '7bfb8ec61a88472c'), ('host.updated', '0bf66f9a92f724a5'),
    ('order.completed', 'ad794f880d252a3b'), ('order.failed', 'e3655db38fd3468d')
) AS built_in(name, digest)
WHERE t.name = built_in.name
    AND left(encode(sha256(convert_to(t.schema::text || t.example::text, 'UTF8')), 'hex'), 16) = built_in.digest;
