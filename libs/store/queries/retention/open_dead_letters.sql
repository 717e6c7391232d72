-- The reasons that there are lead along the index to the oldest dead letters of each.
DELETE FROM dead_letters
WHERE id IN (SELECT id FROM dead_letters
             WHERE state = 'OPEN' AND lane IN ('push', 'reseller') AND created_at < $1
               AND reason = ANY (ARRAY(SELECT DISTINCT reason FROM dead_letter_totals WHERE state = 'OPEN'))
             LIMIT $2 FOR UPDATE SKIP LOCKED)
