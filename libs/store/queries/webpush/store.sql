WITH new AS (
    SELECT * FROM unnest(
        $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::bytea[], $8::text[], $9::text[],
        $10::text[], $11::boolean[]
    ) WITH ORDINALITY AS n(
        uaid, channel, topic, version, received_at, expires_at, data, encoding, encryption, crypto_key, replaced, place)
),
-- The lock makes what follows hold until the commit: a move to another month, a connection and an unregistration wait.
client AS MATERIALIZED (
    SELECT n.place, c.month, c.node, c.connected_at, n.channel = ANY (c.channels) AS subscribed
    FROM new n JOIN webpush_clients c ON c.uaid = n.uaid
    FOR SHARE OF c
),
written AS (
    INSERT INTO webpush_messages AS m
        (uaid, month, channel, topic, version, received_at, expires_at, data, encoding, encryption, crypto_key)
    SELECT n.uaid, c.month, n.channel, n.topic, n.version, n.received_at, n.expires_at, n.data, n.encoding, n.encryption, n.crypto_key
    FROM client c JOIN new n ON n.place = c.place
    WHERE c.subscribed AND NOT n.replaced
    -- One order for all: two stores that replace messages of the same topics do not wait for each other.
    ORDER BY n.uaid, n.channel, n.topic NULLS LAST, n.place
    -- With a new identifier: an acknowledgement of the one before must not delete it.
    ON CONFLICT (uaid, month, channel, topic) WHERE topic IS NOT NULL DO UPDATE
    SET id = excluded.id, version = excluded.version, received_at = excluded.received_at, expires_at = excluded.expires_at,
        data = excluded.data, encoding = excluded.encoding, encryption = excluded.encryption, crypto_key = excluded.crypto_key
)
SELECT place AS "place!", node, connected_at AS "connected_at!", subscribed AS "subscribed!" FROM client
