SELECT uaid, month, node, connected_at, router_type, channels, created_at
FROM webpush_clients
WHERE uaid = $1
