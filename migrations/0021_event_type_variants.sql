-- Event types have variants: further payloads, one for each way that they can differ from the example.
SET LOCAL lock_timeout = '5s';

ALTER TABLE event_types
    ADD COLUMN variants jsonb NOT NULL DEFAULT '[]',
    ADD CONSTRAINT variants_are_listed CHECK (jsonb_typeof(variants) = 'array') NOT VALID;

COMMENT ON COLUMN event_types.variants IS 'Further payloads, for readers: [{"name", "description", "data"}].';

-- A variant is written 'name | when it occurs | data'. The digest is over schema and example as they came with 0013: where
-- whoever runs the installation has put others in, these payloads could be wrong, and it is his to say what the type holds.
UPDATE event_types t
SET variants = listed.variants
FROM (VALUES
    ('domain.created', 'e05240c9a83dc92f',
     ARRAY ['minimal | Nothing but what is always there. |
              {"domain": {"name": "example.org", "createdAt": "2026-11-21T12:00:00Z",
              "expiresAt": "2027-11-21T12:00:00Z"}}',
            'without-order | No order of yours led to it. |
              {"domain": {"name": "example.org", "createdAt": "2026-11-21T12:00:00Z",
              "expiresAt": "2027-11-21T12:00:00Z", "periodInYears": 1, "nameservers": ["ns1.example.net",
              "ns2.example.net"]}}',
            'without-nameservers | It was registered without name servers, and does not resolve yet. |
              {"domain": {"name": "example.org", "createdAt": "2026-11-21T12:00:00Z",
              "expiresAt": "2027-11-21T12:00:00Z", "periodInYears": 1}, "orderId": "order-4711"}',
            'several-years | It was registered for ten years. |
              {"domain": {"name": "example.org", "createdAt": "2026-11-21T12:00:00Z",
              "expiresAt": "2036-11-21T12:00:00Z", "periodInYears": 10, "nameservers": ["ns1.example.net",
              "ns2.example.net"]}, "orderId": "order-4711"}',
            'internationalised | Its name has letters beyond ASCII, and is written in Punycode. |
              {"domain": {"name": "xn--bcher-kva.example", "createdAt": "2026-11-21T12:00:00Z",
              "expiresAt": "2027-11-21T12:00:00Z", "periodInYears": 1, "nameservers": ["ns1.example.net",
              "ns2.example.net"]}, "orderId": "order-4711"}']),
    ('domain.renewed', 'e1d5dbf3d144baff',
     ARRAY ['minimal | Nothing but what is always there. |
              {"domain": {"name": "example.org", "expiresAt": "2028-11-21T12:00:00Z"}, "automatic": true}',
            'by-order | You ordered it. |
              {"domain": {"name": "example.org", "expiresAt": "2028-11-21T12:00:00Z"},
              "previousExpiresAt": "2027-11-21T12:00:00Z", "automatic": false, "orderId": "order-4712"}',
            'by-hand-without-order | Somebody asked for it otherwise than by an order, as by telephone. |
              {"domain": {"name": "example.org", "expiresAt": "2028-11-21T12:00:00Z"},
              "previousExpiresAt": "2027-11-21T12:00:00Z", "automatic": false}']),
    ('domain.updated', '0f6cf90a48814165',
     ARRAY ['several-changes | More than one thing changed at once. |
              {"domain": {"name": "example.org"}, "changed": ["comment", "privacy"]}']),
    ('domain.expiring', 'a79a1642cb938edc',
     ARRAY ['in-60-days | The first reminder. |
              {"domain": {"name": "example.org", "expiresAt": "2027-01-20T12:00:00Z"}, "daysLeft": 60,
              "autoRenew": false}',
            'in-14-days | The third reminder. |
              {"domain": {"name": "example.org", "expiresAt": "2026-12-05T12:00:00Z"}, "daysLeft": 14,
              "autoRenew": false}',
            'in-7-days | The fourth reminder. |
              {"domain": {"name": "example.org", "expiresAt": "2026-11-28T12:00:00Z"}, "daysLeft": 7,
              "autoRenew": false}',
            'in-1-day | The last reminder. |
              {"domain": {"name": "example.org", "expiresAt": "2026-11-22T12:00:00Z"}, "daysLeft": 1,
              "autoRenew": false}',
            'renewed-automatically | Nobody has to do anything: it will be renewed without an order. |
              {"domain": {"name": "example.org", "expiresAt": "2026-12-21T12:00:00Z"}, "daysLeft": 30,
              "autoRenew": true}']),
    ('domain.expired', '81940aac21987894',
     ARRAY ['no-ordinary-renewal | It can no longer be renewed at the ordinary price. |
              {"domain": {"name": "example.org", "expiredAt": "2026-11-21T12:00:00Z"}}']),
    ('domain.deleted', '0520c10fd6d58f41',
     ARRAY ['expired | It was not renewed, and can be restored for a while. |
              {"domain": {"name": "example.org"}, "reason": "expired", "restorableUntil": "2026-12-21T12:00:00Z"}',
            'expired-for-good | It was not renewed, and cannot be restored. |
              {"domain": {"name": "example.org"}, "reason": "expired"}',
            'requested-for-good | You asked for it, and it cannot be restored. |
              {"domain": {"name": "example.org"}, "reason": "requested"}',
            'policy | The registry or we deleted it because of a rule, and it can be restored for a while. |
              {"domain": {"name": "example.org"}, "reason": "policy", "restorableUntil": "2026-12-21T12:00:00Z"}',
            'policy-for-good | The registry or we deleted it because of a rule, and it cannot be restored. |
              {"domain": {"name": "example.org"}, "reason": "policy"}']),
    ('domain.suspended', 'fd4ebcc348a889e6',
     ARRAY ['abuse | It was used for phishing, malware, spam or the like. |
              {"domain": {"name": "example.org"}, "reason": "abuse"}',
            'court-order | A court ordered it. | {"domain": {"name": "example.org"}, "reason": "court_order"}',
            'registry | The registry did it for reasons of its own. |
              {"domain": {"name": "example.org"}, "reason": "registry"}']),
    ('domain.transfer.requested', '4aeee63be3676637',
     ARRAY ['out-without-date | Away from us, and nobody knows yet when it is carried out. |
              {"domain": {"name": "example.org"}, "direction": "out", "transferId": "transfer-17"}',
            'in | Towards us. |
              {"domain": {"name": "example.org"}, "direction": "in", "transferId": "transfer-17",
              "decidedBy": "2026-11-26T12:00:00Z"}',
            'in-without-date | Towards us, and nobody knows yet when it is carried out. |
              {"domain": {"name": "example.org"}, "direction": "in", "transferId": "transfer-17"}']),
    ('domain.transfer.approved', '5f0735e693ef6495',
     ARRAY ['out | Away from us. | {"domain": {"name": "example.org"}, "direction": "out", "transferId": "transfer-17"}']),
    ('domain.transfer.rejected', 'b97ea873c6fbaf94',
     ARRAY ['out | Away from us. |
              {"domain": {"name": "example.org"}, "direction": "out", "transferId": "transfer-17",
              "reason": "the owner has objected"}']),
    ('domain.transfer.cancelled', '5f0735e693ef6495',
     ARRAY ['out | Away from us. | {"domain": {"name": "example.org"}, "direction": "out", "transferId": "transfer-17"}']),
    ('domain.transfer.failed', '12ce4cbe42eb40f1',
     ARRAY ['out | Away from us. |
              {"domain": {"name": "example.org"}, "direction": "out", "transferId": "transfer-17",
              "reason": "the gaining registrar did not carry it out in time"}']),
    ('domain.transfer.completed', '7c099206c4d3522b',
     ARRAY ['in-without-expiry | It came to us, and the registry has not told yet until when it is registered. |
              {"domain": {"name": "example.org"}, "direction": "in", "transferId": "transfer-17"}',
            'out | It has left us. | {"domain": {"name": "example.org"}, "direction": "out", "transferId": "transfer-17"}']),
    ('domain.nameservers.updated', '2f754f3feb4cad7a',
     ARRAY ['without-previous | Those before are not known. |
              {"domain": {"name": "example.org"}, "nameservers": ["ns1.example.net", "ns2.example.net"]}',
            'first | It had none before. |
              {"domain": {"name": "example.org"}, "nameservers": ["ns1.example.net", "ns2.example.net"],
              "previousNameservers": []}',
            'none-left | It has none any more, and does not resolve. |
              {"domain": {"name": "example.org"}, "nameservers": [], "previousNameservers": ["ns1.example.com"]}']),
    ('domain.dnssec.updated', '98e7cde55bcf6fa3',
     ARRAY ['several-records | It has several records, as while a key is replaced. |
              {"domain": {"name": "example.org"}, "signed": true, "dsRecords": [{"keyTag": 12345, "algorithm": 13,
              "digestType": 2, "digest": "49FD46E6C4B45C55D4AC69CBD3CD34AC1AFE51DE5F1C5B1F7B6D6E3D2D9F5B07"},
              {"keyTag": 54321, "algorithm": 13, "digestType": 2,
              "digest": "A8F1C0B7D2E35964708B1C9DAE0F3352617485960A1B2C3D4E5F60718293A4B5"}]}',
            'signed-without-records | It is signed, and the records are not told. |
              {"domain": {"name": "example.org"}, "signed": true}',
            'unsigned | Its last record was removed. | {"domain": {"name": "example.org"}, "signed": false}']),
    ('domain.contacts.updated', 'ce2bd293deac3f15',
     ARRAY ['admin | Its administrative contact is another one. | {"domain": {"name": "example.org"}, "roles": ["admin"]}',
            'tech | Its technical contact is another one. | {"domain": {"name": "example.org"}, "roles": ["tech"]}',
            'billing | Its billing contact is another one. | {"domain": {"name": "example.org"}, "roles": ["billing"]}',
            'all-roles | All three are other ones. |
              {"domain": {"name": "example.org"}, "roles": ["admin", "tech", "billing"]}']),
    ('domain.owner.changed', '9fec993de9575fdb',
     ARRAY ['not-locked | It can be transferred at once. | {"domain": {"name": "example.org"}, "contactId": "contact-42"}']),
    ('domain.lock.enabled', 'b723c52a1667e46d',
     ARRAY ['update | It can no longer be changed. | {"domain": {"name": "example.org"}, "lock": "update"}',
            'delete | It can no longer be deleted. | {"domain": {"name": "example.org"}, "lock": "delete"}',
            'registry | The registry does nothing to it without asking back. |
              {"domain": {"name": "example.org"}, "lock": "registry"}']),
    ('domain.lock.disabled', 'b723c52a1667e46d',
     ARRAY ['update | It can be changed again. | {"domain": {"name": "example.org"}, "lock": "update"}',
            'delete | It can be deleted again. | {"domain": {"name": "example.org"}, "lock": "delete"}',
            'registry | The registry does again what it is asked for. |
              {"domain": {"name": "example.org"}, "lock": "registry"}']),
    ('domain.autorenew.updated', '71d21b623730a071',
     ARRAY ['off | It needs an order to be renewed from now on. | {"domain": {"name": "example.org"}, "autoRenew": false}']),
    ('domain.authcode.changed', '187d1af130b817e8',
     ARRAY ['without-end | The code is valid until it is changed again. | {"domain": {"name": "example.org"}}']),
    ('contact.created', '6f5a015bcc4d80bb',
     ARRAY ['person | A natural person. | {"contact": {"id": "contact-43", "kind": "person", "country": "DE"}}',
            'person-without-country | A natural person whose address names no country. |
              {"contact": {"id": "contact-43", "kind": "person"}}',
            'organisation-without-country | An organisation whose address names no country. |
              {"contact": {"id": "contact-42", "kind": "organisation"}}']),
    ('contact.updated', '3b4b93f10500f95e',
     ARRAY ['one-field | A single field changed. | {"contact": {"id": "contact-42"}, "changed": ["address"]}']),
    ('contact.verification.requested', 'a88a2c16525aca0d',
     ARRAY ['email-without-domains | By e-mail, and no domain depends on it yet. |
              {"contact": {"id": "contact-42"}, "channel": "email", "deadline": "2026-12-06T12:00:00Z"}',
            'phone | By telephone. |
              {"contact": {"id": "contact-42"}, "channel": "phone", "deadline": "2026-12-06T12:00:00Z",
              "domains": ["example.org"]}',
            'document | By a document, such as a copy of a passport. |
              {"contact": {"id": "contact-42"}, "channel": "document", "deadline": "2026-12-06T12:00:00Z",
              "domains": ["example.org"]}',
            'several-domains | Several domains depend on it. |
              {"contact": {"id": "contact-42"}, "channel": "email", "deadline": "2026-12-06T12:00:00Z",
              "domains": ["example.net", "example.org"]}']),
    ('contact.verification.completed', 'd9234d41bf03c817',
     ARRAY ['phone | By telephone. | {"contact": {"id": "contact-42"}, "channel": "phone"}',
            'document | By a document, such as a copy of a passport. |
              {"contact": {"id": "contact-42"}, "channel": "document"}']),
    ('contact.verification.failed', 'b169775be6e9d743',
     ARRAY ['phone | By telephone. | {"contact": {"id": "contact-42"}, "channel": "phone", "domains": ["example.org"]}',
            'document | By a document, such as a copy of a passport. |
              {"contact": {"id": "contact-42"}, "channel": "document", "domains": ["example.org"]}',
            'several-domains | Several domains are suspended. |
              {"contact": {"id": "contact-42"}, "channel": "email", "domains": ["example.net", "example.org"]}',
            'no-domains | No domain depended on it. | {"contact": {"id": "contact-42"}, "channel": "email", "domains": []}']),
    ('host.created', 'fcb01aef1251639d',
     ARRAY ['ipv4 | It has one address, of IPv4. | {"host": {"name": "ns1.example.org", "addresses": ["192.0.2.1"]}}',
            'ipv6 | It has one address, of IPv6. | {"host": {"name": "ns1.example.org", "addresses": ["2001:db8::1"]}}']),
    ('host.updated', '0bf66f9a92f724a5',
     ARRAY ['ipv6 | It has one address, of IPv6. | {"host": {"name": "ns1.example.org", "addresses": ["2001:db8::2"]}}',
            'both | It has addresses of both kinds. |
              {"host": {"name": "ns1.example.org", "addresses": ["192.0.2.2", "2001:db8::2"]}}']),
    ('order.completed', 'ad794f880d252a3b',
     ARRAY ['renewal | Domains were renewed. |
              {"order": {"id": "order-4712", "kind": "renewal"}, "domains": ["example.net", "example.org"]}',
            'transfer | A domain has come to us. |
              {"order": {"id": "order-4713", "kind": "transfer"}, "domains": ["example.org"]}',
            'restoration | A deleted domain is back. |
              {"order": {"id": "order-4714", "kind": "restoration"}, "domains": ["example.org"]}',
            'change | Something was changed. |
              {"order": {"id": "order-4715", "kind": "change"}, "domains": ["example.org"]}',
            'change-without-domains | Something was changed that belongs to no domain, such as a contact. |
              {"order": {"id": "order-4716", "kind": "change"}}']),
    ('order.failed', 'e3655db38fd3468d',
     ARRAY ['renewal | A domain could not be renewed. |
              {"order": {"id": "order-4712", "kind": "renewal"}, "reason": "the domain is locked",
              "domains": ["example.org"]}',
            'transfer | A domain could not be transferred. |
              {"order": {"id": "order-4713", "kind": "transfer"}, "reason": "the authorisation code is wrong",
              "domains": ["example.org"]}',
            'restoration | A domain could not be restored. |
              {"order": {"id": "order-4714", "kind": "restoration"}, "reason": "it can no longer be restored",
              "domains": ["example.org"]}',
            'change | Something could not be changed. |
              {"order": {"id": "order-4715", "kind": "change"}, "reason": "the name servers do not answer",
              "domains": ["example.org"]}',
            'change-without-domains | Something could not be changed that belongs to no domain, such as a contact. |
              {"order": {"id": "order-4716", "kind": "change"}, "reason": "the country is not known"}'])
) AS v(type, digest, lines)
CROSS JOIN LATERAL (
    SELECT jsonb_agg(jsonb_build_object(
               'name', btrim(split_part(line, '|', 1)),
               'description', btrim(split_part(line, '|', 2)),
               'data', split_part(line, '|', 3)::jsonb) ORDER BY place) AS variants
    FROM unnest(v.lines) WITH ORDINALITY AS l(line, place)
) listed
WHERE t.name = v.type AND t.variants = '[]'
    AND left(encode(sha256(convert_to(t.schema::text || t.example::text, 'UTF8')), 'hex'), 16) = v.digest;
