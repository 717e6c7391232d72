-- The same identifiers, with one digest instead of three: it is computed for every notification that is fanned out.
SET LOCAL lock_timeout = '5s';

-- Bits are counted from the least of each byte: those set are the version, 8, and the variant.
CREATE OR REPLACE FUNCTION notification_id(event uuid, subscription uuid) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN encode(
        substring(uuid_send(event) FROM 1 FOR 6)
        || set_bit(set_bit(set_bit(set_bit(set_bit(set_bit(
               substring(sha256(uuid_send(event) || uuid_send(subscription)) FROM 1 FOR 10),
               7, 1), 6, 0), 5, 0), 4, 0), 23, 1), 22, 0),
        'hex')::uuid;
