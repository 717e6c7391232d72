-- The event types that a domain registrar has to tell its resellers of. A type that is there already is left as it is:
-- the catalogue belongs to whoever runs the installation.
SET LOCAL lock_timeout = '5s';

-- An attribute is written 'name | type | meaning'; an exclamation mark after the type says that it is always there.
CREATE FUNCTION pg_temp.attributes_of(lines text[]) RETURNS jsonb
    LANGUAGE sql
AS $$
    SELECT jsonb_agg(jsonb_build_object(
               'name', split_part(line, ' | ', 1),
               'type', rtrim(split_part(line, ' | ', 2), '!'),
               'description', split_part(line, ' | ', 3),
               'required', split_part(line, ' | ', 2) LIKE '%!') ORDER BY place)
    FROM unnest(lines) WITH ORDINALITY AS l(line, place)
$$;

CREATE FUNCTION pg_temp.type_schema(type text) RETURNS jsonb
    LANGUAGE sql
    RETURN CASE type
        WHEN 'time' THEN '{"type": "string", "format": "date-time"}'::jsonb
        WHEN 'texts' THEN '{"type": "array", "items": {"type": "string"}}'::jsonb
        WHEN 'objects' THEN '{"type": "array", "items": {"type": "object"}}'::jsonb
        ELSE jsonb_build_object('type', type) END;

-- The schema says what the attributes say: types, and what is always there. Further attributes are allowed.
CREATE FUNCTION pg_temp.schema_of(attributes jsonb) RETURNS jsonb
    LANGUAGE plpgsql
AS $$
DECLARE
    schema    jsonb := '{"type": "object", "properties": {}}';
    attribute jsonb;
    path      text[];
    place     text[];
    node      text[];
BEGIN
    FOR attribute IN SELECT value FROM jsonb_array_elements(attributes) LOOP
        path := string_to_array(attribute ->> 'name', '.');
        place := '{}';
        FOR i IN 1 .. cardinality(path) LOOP
            node := place || ARRAY ['properties', path[i]];
            IF schema #> node IS NULL THEN
                schema := jsonb_set(schema, node, CASE
                    WHEN i = cardinality(path) THEN pg_temp.type_schema(attribute ->> 'type')
                    ELSE '{"type": "object", "properties": {}}'::jsonb END);
            END IF;
            IF (attribute ->> 'required')::boolean
                AND NOT coalesce(schema #> (place || 'required'::text) ? path[i], false) THEN
                schema := jsonb_set(schema, place || 'required'::text,
                    coalesce(schema #> (place || 'required'::text), '[]'::jsonb) || to_jsonb(path[i]));
            END IF;
            place := node;
        END LOOP;
    END LOOP;
    RETURN schema;
END
$$;

INSERT INTO event_types (name, description, attributes, example, schema)
SELECT t.name, t.description, a.attributes, t.example::jsonb, pg_temp.schema_of(a.attributes)
FROM (VALUES
    ('domain.created', 'A domain was registered.',
     ARRAY ['domain.name | string! | The name of the domain, in lower case; internationalised names in Punycode.',
            'domain.createdAt | time! | When it was registered.',
            'domain.expiresAt | time! | Until when it is registered.',
            'domain.periodInYears | integer | For how many years it was registered.',
            'domain.nameservers | texts | Its name servers.',
            'orderId | string | The order that it belongs to.'],
     '{"domain": {"name": "example.org", "createdAt": "2026-11-21T12:00:00Z", "expiresAt": "2027-11-21T12:00:00Z",
       "periodInYears": 1, "nameservers": ["ns1.example.net", "ns2.example.net"]}, "orderId": "order-4711"}'),
    ('domain.renewed', 'A domain was renewed, by order or automatically.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'domain.expiresAt | time! | Until when it is registered now.',
            'previousExpiresAt | time | Until when it was registered before.',
            'automatic | boolean! | Whether nobody had to ask for it.',
            'orderId | string | The order that it belongs to.'],
     '{"domain": {"name": "example.org", "expiresAt": "2028-11-21T12:00:00Z"},
       "previousExpiresAt": "2027-11-21T12:00:00Z", "automatic": true}'),
    ('domain.updated', 'Something about a domain changed that has no event type of its own.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'changed | texts! | What changed.'],
     '{"domain": {"name": "example.org"}, "changed": ["privacy"]}'),
    ('domain.expiring', 'A domain will expire soon. Sent 60, 30, 14, 7 and 1 days before.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'domain.expiresAt | time! | When it expires.',
            'daysLeft | integer! | Full days until then.',
            'autoRenew | boolean! | Whether it will be renewed without an order.'],
     '{"domain": {"name": "example.org", "expiresAt": "2026-12-21T12:00:00Z"}, "daysLeft": 30, "autoRenew": false}'),
    ('domain.expired', 'A domain has expired and does not resolve any more; it can still be renewed.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'domain.expiredAt | time! | When it expired.',
            'renewableUntil | time | Until when it can be renewed at the ordinary price.'],
     '{"domain": {"name": "example.org", "expiredAt": "2026-11-21T12:00:00Z"}, "renewableUntil": "2026-12-31T12:00:00Z"}'),
    ('domain.deleted', 'A domain was deleted.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'reason | string! | expired, requested or policy.',
            'restorableUntil | time | Until when it can be restored; absent when it cannot.'],
     '{"domain": {"name": "example.org"}, "reason": "requested", "restorableUntil": "2026-12-21T12:00:00Z"}'),
    ('domain.restored', 'A deleted domain was restored.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'domain.expiresAt | time! | Until when it is registered now.'],
     '{"domain": {"name": "example.org", "expiresAt": "2027-11-21T12:00:00Z"}}'),
    ('domain.suspended', 'A domain was taken out of the DNS, by the registry or by us.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'reason | string! | verification, abuse, court_order or registry.'],
     '{"domain": {"name": "example.org"}, "reason": "verification"}'),
    ('domain.unsuspended', 'A suspended domain is in the DNS again.',
     ARRAY ['domain.name | string! | The name of the domain.'],
     '{"domain": {"name": "example.org"}}'),
    ('domain.transfer.requested', 'The transfer of a domain was asked for, towards us or away from us.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'direction | string! | in or out.',
            'transferId | string! | Names the transfer in all its events.',
            'decidedBy | time | When it is carried out unless somebody objects.'],
     '{"domain": {"name": "example.org"}, "direction": "out", "transferId": "transfer-17", "decidedBy": "2026-11-26T12:00:00Z"}'),
    ('domain.transfer.approved', 'A transfer was approved and will be carried out.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'direction | string! | in or out.',
            'transferId | string! | Names the transfer in all its events.'],
     '{"domain": {"name": "example.org"}, "direction": "in", "transferId": "transfer-17"}'),
    ('domain.transfer.rejected', 'A transfer was rejected by the losing side.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'direction | string! | in or out.',
            'transferId | string! | Names the transfer in all its events.',
            'reason | string! | Why, in words.'],
     '{"domain": {"name": "example.org"}, "direction": "in", "transferId": "transfer-17", "reason": "the domain is locked"}'),
    ('domain.transfer.cancelled', 'A transfer was called off by the side that had asked for it.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'direction | string! | in or out.',
            'transferId | string! | Names the transfer in all its events.'],
     '{"domain": {"name": "example.org"}, "direction": "in", "transferId": "transfer-17"}'),
    ('domain.transfer.failed', 'A transfer could not be carried out.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'direction | string! | in or out.',
            'transferId | string! | Names the transfer in all its events.',
            'reason | string! | Why, in words.'],
     '{"domain": {"name": "example.org"}, "direction": "in", "transferId": "transfer-17", "reason": "the authorisation code is wrong"}'),
    ('domain.transfer.completed', 'A domain has changed its registrar.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'direction | string! | in or out.',
            'transferId | string! | Names the transfer in all its events.',
            'domain.expiresAt | time | Until when it is registered, when it came to us.'],
     '{"domain": {"name": "example.org", "expiresAt": "2027-11-21T12:00:00Z"}, "direction": "in", "transferId": "transfer-17"}'),
    ('domain.nameservers.updated', 'A domain has other name servers.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'nameservers | texts! | Its name servers now.',
            'previousNameservers | texts | Those before.'],
     '{"domain": {"name": "example.org"}, "nameservers": ["ns1.example.net", "ns2.example.net"],
       "previousNameservers": ["ns1.example.com"]}'),
    ('domain.dnssec.updated', 'The DNSSEC records of a domain at the registry changed.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'signed | boolean! | Whether it has any now.',
            'dsRecords | objects | Its DS records: keyTag, algorithm, digestType and digest.'],
     '{"domain": {"name": "example.org"}, "signed": true,
       "dsRecords": [{"keyTag": 12345, "algorithm": 13, "digestType": 2, "digest": "49FD46E6C4B45C55D4AC"}]}'),
    ('domain.contacts.updated', 'A domain refers to other contacts; its owner is the same.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'roles | texts! | Which of admin, tech and billing changed.'],
     '{"domain": {"name": "example.org"}, "roles": ["admin", "tech"]}'),
    ('domain.owner.changed', 'A domain belongs to somebody else.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'contactId | string! | The contact that is its owner now.',
            'transferLockedUntil | time | Until when it cannot be transferred because of that.'],
     '{"domain": {"name": "example.org"}, "contactId": "contact-42", "transferLockedUntil": "2027-01-20T12:00:00Z"}'),
    ('domain.lock.enabled', 'A domain was locked.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'lock | string! | transfer, update, delete or registry.'],
     '{"domain": {"name": "example.org"}, "lock": "transfer"}'),
    ('domain.lock.disabled', 'A lock of a domain was taken off.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'lock | string! | transfer, update, delete or registry.'],
     '{"domain": {"name": "example.org"}, "lock": "transfer"}'),
    ('domain.autorenew.updated', 'Whether a domain is renewed without an order was changed.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'autoRenew | boolean! | Whether it is from now on.'],
     '{"domain": {"name": "example.org"}, "autoRenew": true}'),
    ('domain.authcode.changed', 'The authorisation code of a domain was changed. The event does not hold it.',
     ARRAY ['domain.name | string! | The name of the domain.',
            'validUntil | time | Until when it is valid.'],
     '{"domain": {"name": "example.org"}, "validUntil": "2026-12-05T12:00:00Z"}'),
    ('contact.created', 'A contact was made. The event does not hold its address.',
     ARRAY ['contact.id | string! | Identifies the contact.',
            'contact.kind | string! | person or organisation.',
            'contact.country | string | The country of its address, ISO 3166-1 alpha-2.'],
     '{"contact": {"id": "contact-42", "kind": "organisation", "country": "LV"}}'),
    ('contact.updated', 'A contact was changed.',
     ARRAY ['contact.id | string! | Identifies the contact.',
            'changed | texts! | Which of its fields changed; not what they hold.'],
     '{"contact": {"id": "contact-42"}, "changed": ["email", "phone"]}'),
    ('contact.deleted', 'A contact that no domain referred to was deleted.',
     ARRAY ['contact.id | string! | Identifies the contact.'],
     '{"contact": {"id": "contact-42"}}'),
    ('contact.verification.requested', 'A contact was asked to confirm its data.',
     ARRAY ['contact.id | string! | Identifies the contact.',
            'channel | string! | email, phone or document.',
            'deadline | time! | After it the domains of the contact are suspended.',
            'domains | texts | The domains that depend on it.'],
     '{"contact": {"id": "contact-42"}, "channel": "email", "deadline": "2026-12-06T12:00:00Z", "domains": ["example.org"]}'),
    ('contact.verification.completed', 'A contact has confirmed its data.',
     ARRAY ['contact.id | string! | Identifies the contact.',
            'channel | string! | email, phone or document.'],
     '{"contact": {"id": "contact-42"}, "channel": "email"}'),
    ('contact.verification.failed', 'A contact has not confirmed its data in time.',
     ARRAY ['contact.id | string! | Identifies the contact.',
            'channel | string! | email, phone or document.',
            'domains | texts! | The domains that are suspended because of it.'],
     '{"contact": {"id": "contact-42"}, "channel": "email", "domains": ["example.org"]}'),
    ('host.created', 'A name server below a domain was registered (glue).',
     ARRAY ['host.name | string! | Its name.',
            'host.addresses | texts! | Its addresses.'],
     '{"host": {"name": "ns1.example.org", "addresses": ["192.0.2.1", "2001:db8::1"]}}'),
    ('host.updated', 'A registered name server has other addresses.',
     ARRAY ['host.name | string! | Its name.',
            'host.addresses | texts! | Its addresses now.'],
     '{"host": {"name": "ns1.example.org", "addresses": ["192.0.2.2"]}}'),
    ('host.deleted', 'A registered name server was deleted.',
     ARRAY ['host.name | string! | Its name.'],
     '{"host": {"name": "ns1.example.org"}}'),
    ('order.completed', 'Everything that was ordered is done.',
     ARRAY ['order.id | string! | Identifies the order.',
            'order.kind | string! | registration, renewal, transfer, restoration or change.',
            'domains | texts | The domains concerned.'],
     '{"order": {"id": "order-4711", "kind": "registration"}, "domains": ["example.org"]}'),
    ('order.failed', 'What was ordered could not be done.',
     ARRAY ['order.id | string! | Identifies the order.',
            'order.kind | string! | registration, renewal, transfer, restoration or change.',
            'reason | string! | Why, in words.',
            'domains | texts | The domains concerned.'],
     '{"order": {"id": "order-4711", "kind": "registration"}, "reason": "the domain was taken", "domains": ["example.org"]}')
) AS t(name, description, lines, example)
CROSS JOIN LATERAL (SELECT pg_temp.attributes_of(t.lines) AS attributes) a
ON CONFLICT (name) DO NOTHING;

DROP FUNCTION pg_temp.schema_of(jsonb);
DROP FUNCTION pg_temp.type_schema(text);
DROP FUNCTION pg_temp.attributes_of(text[]);
