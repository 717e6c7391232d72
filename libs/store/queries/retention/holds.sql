DELETE FROM past_holds WHERE id IN (
    SELECT id FROM past_holds WHERE ended_at < $1 ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED)
