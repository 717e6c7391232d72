UPDATE webpush_clients SET node = $2, connected_at = $3
WHERE uaid = $1 AND connected_at <= $3
RETURNING uaid, month, node, connected_at, router_type, channels, created_at
