DELETE FROM dead_letters
WHERE id IN (SELECT id FROM dead_letters
             WHERE state IN ('REPLAYED', 'DISCARDED') AND created_at < $1 AND resolved_at < $1
             LIMIT $2 FOR UPDATE SKIP LOCKED)
