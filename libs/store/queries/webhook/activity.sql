-- Identifiers are in the order of time: the cursor and the beginning are bounds of each index that is read, in a plan that does not know them, too.
SELECT a.id, a.at, a.actor, a.action, a.subject, a.note, a.details
FROM audit_log a
WHERE a.id = ANY (ARRAY(
      SELECT DISTINCT l.id
      FROM ((SELECT x.id
             FROM (SELECT 'subscription/' || s.id AS subject FROM subscriptions s WHERE s.reseller_id = $1
                   UNION ALL SELECT 'reseller/' || $1) AS s
             CROSS JOIN LATERAL (
                 SELECT e.id FROM audit_log e
                 WHERE e.subject = s.subject
                   AND e.id >= $10 AND e.id < coalesce($3::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
                   AND ($4::text[] IS NULL OR e.action = ANY ($4))
                   AND ($5::timestamptz IS NULL OR e.at >= $5) AND ($6::timestamptz IS NULL OR e.at < $6)
                   AND ($8::boolean IS NULL
                        OR $8 = (e.actor = ANY ($2::text[]) OR coalesce(right(e.actor, length($9::text)) = $9, false)))
                 ORDER BY e.id DESC LIMIT $7) AS x)
            UNION ALL
            -- Of several resellers at once: the first two conditions are those of an index, which has nothing else that is done to the lane.
            (SELECT e.id FROM audit_log e
             WHERE e.subject = 'lane/reseller' AND e.details ? 'resellers' AND e.details->'resellers' ? $1
               AND e.id >= $10 AND e.id < coalesce($3::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
               AND ($4::text[] IS NULL OR e.action = ANY ($4))
               AND ($5::timestamptz IS NULL OR e.at >= $5) AND ($6::timestamptz IS NULL OR e.at < $6)
               AND ($8::boolean IS NULL
                    OR $8 = (e.actor = ANY ($2::text[]) OR coalesce(right(e.actor, length($9::text)) = $9, false)))
             ORDER BY e.id DESC LIMIT $7)
            UNION ALL
            (SELECT x.id FROM UNNEST(CASE WHEN $8 IS DISTINCT FROM false THEN $2::text[] END) AS n(actor)
             CROSS JOIN LATERAL (
                 SELECT e.id FROM audit_log e
                 WHERE e.actor = n.actor
                   AND e.id >= $10 AND e.id < coalesce($3::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
                   AND ($4::text[] IS NULL OR e.action = ANY ($4))
                   AND ($5::timestamptz IS NULL OR e.at >= $5) AND ($6::timestamptz IS NULL OR e.at < $6)
                 ORDER BY e.id DESC LIMIT $7) AS x)) AS l
      ORDER BY l.id DESC LIMIT $7))
ORDER BY a.id DESC
