SELECT id AS "id!", channel AS "channel!", topic, version AS "version!", received_at AS "received_at!", expires_at AS "expires_at!",
    data, encoding, encryption, crypto_key
FROM (
    (SELECT m.* FROM webpush_messages m
     WHERE m.uaid = $1 AND m.month = $2 AND m.topic IS NOT NULL AND m.expires_at > $3 AND m.id <> ALL ($4)
     ORDER BY m.id LIMIT $5)
    UNION ALL
    (SELECT m.* FROM webpush_messages m
     WHERE m.uaid = $1 AND m.month = $2 AND m.topic IS NULL AND m.expires_at > $3 AND m.id <> ALL ($4)
     ORDER BY m.id LIMIT $5)
) AS waiting
ORDER BY topic IS NULL, id
LIMIT $5
