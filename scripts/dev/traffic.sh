# Sourced after checkout.sh and process.sh. Callers and receivers of scripts/drill, scripts/failover and scripts/compose-test, the faults that they live
# through, and what the database holds in the end. The books are in $FOLDER/books; "sql DATABASE STATEMENT" is the script's, with tabs between columns.

readonly DRILL=$CHECKOUT/testing/drill

traffic_pid=

# --- what the database holds

readonly UNITS="SELECT 'push' AS lane, push_key AS name, '' AS path, status, id FROM push_notifications
    UNION ALL SELECT 'reseller', e.event_id, regexp_replace(s.url, '^https?://[^/]*', ''), n.status, n.id
    FROM notifications n JOIN events e ON e.id = n.event JOIN subscriptions s ON s.id = n.subscription_id"

write_units() { sql postrider "SELECT lane, name, path, status FROM ($UNITS) AS u ORDER BY 1, 2, 3" >"$FOLDER/books/$1"; }

write_attempts() {
    sql postrider "SELECT u.lane, u.name, u.path, extract(epoch FROM a.started_at), a.ending FROM ($UNITS) AS u JOIN (
            SELECT push_notification_id AS id, started_at, CASE status WHEN 'OK' THEN 'OK' ELSE 'UNKNOWN' END AS ending FROM send_attempts
            WHERE status = 'OK' OR other_error_stack_trace LIKE '%may have been sent'
            UNION ALL SELECT notification_id, started_at, CASE status WHEN 'OK' THEN 'OK' ELSE 'UNKNOWN' END FROM delivery_attempts
            WHERE status = 'OK' OR fingerprint = 'delivery/lease-lost'
        ) AS a ON a.id = u.id" >"$FOLDER/books/attempts.tsv"
}

unfinished() {
    sql postrider "SELECT count(*) FROM ($UNITS) AS u
        WHERE status IN ('PENDING', 'IN_MEMORY', 'RETRY') OR status = 'SCHEDULED' AND name NOT LIKE 'later-%'"
}

nothing_is_unfinished() { [[ $(unfinished) == 0 ]]; }

await_the_end() { wait_until 300 nothing_is_unfinished || die "$(unfinished) have not ended"; }

# --- callers and receivers

# choose_retries: what fails waits long enough to meet the loss, and not for long.
choose_retries() {
    export POSTRIDER__PUSH__RETRY__DELAY_IN_SECONDS=15 POSTRIDER__PUSH__RETRY__MAX_ATTEMPTS=100
    export POSTRIDER__RESELLER__RETRY__INITIAL_DELAY_IN_SECONDS=15 POSTRIDER__RESELLER__RETRY__MAX_DELAY_IN_SECONDS=20
    export POSTRIDER__RESELLER__RETRY__MAX_RETRIES=50
}

# start_traffic PREFIX PER_SECOND: so many pushes and so many events.
start_traffic() {
    python3 -B "$DRILL/traffic.py" send "$FOLDER/books/accepted.jsonl" "$1" "$2" &
    traffic_pid=$!
}

stop_traffic() {
    [[ -n $traffic_pid ]] || return 0
    kill -s TERM -- "$traffic_pid" 2>/dev/null || true
    wait "$traffic_pid" || die "the callers failed"
    traffic_pid=
}

abandon_traffic() { [[ -z $traffic_pid ]] || kill -s KILL -- "$traffic_pid" 2>/dev/null || true; }

# subscribe URL: of the receiver, as services reach it. Three endpoints: one that is well, one that fails, and one that gets few a second, so that some
# wait in line.
subscribe() {
    local receiver=$1 slow
    curl -fsS -X PUT "$RECEIVER_URL/_control" -d '{"rules": [{"match": {"path": "/failing", "type": "contact.deleted"}, "status": 503}]}' >/dev/null
    curl -fsS -X PUT "$SWRVE_SIM_URL/script" -d '[{"match": {"user": {"prefix": "failing-"}}, "status": 503}]' >/dev/null
    "$POSTRIDER" subscriptions create --url "$receiver/well" --event-types '*' --email ops@reseller.example --wait -o name >"$FOLDER/well"
    "$POSTRIDER" subscriptions create --url "$receiver/failing" --event-types contact.deleted --email ops@reseller.example --wait -o name >"$FOLDER/failing"
    "$POSTRIDER" subscriptions create --url "$receiver/slow" --event-types domain.created --email ops@reseller.example --wait -o name >"$FOLDER/slow"
    slow=$(<"$FOLDER/slow")
    OPERATOR_KEY=$ADMIN_KEY "$POSTRIDER" quotas set "$slow" --requests-per-second 1 >&2
}

heal_receivers() {
    curl -fsS -X PUT "$RECEIVER_URL/_control" -d '{"rules": []}' >/dev/null
    curl -fsS -X DELETE "$SWRVE_SIM_URL/script" >/dev/null
    OPERATOR_KEY=$ADMIN_KEY "$POSTRIDER" quotas set "$(<"$FOLDER/slow")" --requests-per-second 100 >&2
}

# --- faults

accepted_count() { wc -l <"$FOLDER/books/accepted.jsonl"; }

accepted_more_than() { (($(accepted_count) > $1)); }

# more_traffic COUNT: until so many more have been accepted.
more_traffic() { wait_until 120 accepted_more_than $(($(accepted_count) + $1)) || die "nothing is accepted any more"; }

# fault WHAT: notes when it was done.
fault() {
    say "$1"
    # In some locales it has a comma.
    printf '%s\t%s\n' "${EPOCHREALTIME/,/.}" "$1" >>"$FOLDER/books/faults.tsv"
}
