DELETE FROM quota_requests WHERE id IN (
    SELECT id FROM quota_requests WHERE id < $1 AND decided_at < $2
    ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED)
