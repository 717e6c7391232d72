#!/usr/bin/env python3
"""Makes vectors.json: ID tokens, and what is to be said of them, made by an independent implementation.

usage: pip install joserfc==1.8.0 && python libs/oidc/tests/vectors.py > libs/oidc/tests/vectors.json

Keys and signatures are new each time, and private keys are not kept: only what a provider would publish is in the file.
"""

import base64
import hashlib
import hmac
import json
import sys

from joserfc import jws, jwt
from joserfc.jwk import ECKey, RSAKey

ISSUER, CLIENT, NONCE, NOW = "https://id.example/house", "postrider", "n-0S6_WzA2Mj", 1_790_000_000
CLAIMS = {
    "iss": ISSUER, "sub": "7f3a", "aud": CLIENT, "exp": NOW + 300, "iat": NOW - 5, "auth_time": NOW - 100,
    "nonce": NONCE, "name": "Ada Lovelace", "groups": ["on-call", "everyone"],
}
ALGORITHMS = ["RS256", "PS256", "ES256", "ES384", "RS384"]

rsa, spare, stranger = (RSAKey.generate_key(2048, {"kid": kid, "use": "sig"}) for kid in ("rsa", "spare", "rsa"))
only_rs = RSAKey.generate_key(2048, {"kid": "only-rs", "use": "sig", "alg": "RS256"})
small = RSAKey.generate_key(1024, {"kid": "small", "use": "sig"})
ec = ECKey.generate_key("P-256", {"kid": "ec", "use": "sig"})
encryption = RSAKey.generate_key(2048, {"kid": "encryption", "use": "enc"})
p384 = ECKey.generate_key("P-384", {"kid": "p384", "use": "sig"})
PUBLISHED = [rsa, spare, only_rs, small, ec, encryption, p384]


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def make(key=rsa, alg="RS256", header=None, without=(), **changes):
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if name not in without}
    head = {"alg": alg, "kid": key.kid, **(header or {})}
    head = {name: value for name, value in head.items() if value is not None}
    payload = json.dumps(claims).encode()
    registry = jws.JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    return jws.serialize_compact(head, payload, key, registry=registry)


def tampered(token, change):
    head, payload, signature = token.split(".")
    return ".".join(change(head, payload, signature))


def with_claims(head, payload, signature):
    return head, b64(json.dumps({**CLAIMS, "groups": ["admins"]}).encode()), signature


def with_flipped_bit(head, payload, signature):
    raw = bytearray(base64.urlsafe_b64decode(signature + "=="))
    raw[len(raw) // 2] ^= 1
    return head, payload, b64(bytes(raw))


def with_header(**changes):
    def change(head, payload, signature):
        read = json.loads(base64.urlsafe_b64decode(head + "=="))
        return b64(json.dumps({**read, **changes}).encode()), payload, signature
    return change


def unsigned(alg):
    return f'{b64(json.dumps({"alg": alg, "kid": "rsa"}).encode())}.{b64(json.dumps(CLAIMS).encode())}.'


def by_shared_secret(secret):
    # The classic confusion: the published key taken as the secret of an HMAC. The implementation refuses to make such a token.
    signed = f'{b64(json.dumps({"alg": "HS256", "kid": "rsa"}).encode())}.{b64(json.dumps(CLAIMS).encode())}'
    return f"{signed}.{b64(hmac.digest(secret, signed.encode(), hashlib.sha256))}"


def der_signature():
    # ECDSA as X.509 has it, instead of the fixed form of JWS.
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec as curves
    head, payload, _ = make(key=ec, alg="ES256").split(".")
    signature = ec.private_key.sign(f"{head}.{payload}".encode(), curves.ECDSA(hashes.SHA256()))
    return f"{head}.{payload}.{b64(signature)}"


good = make()
VALID, SIGNATURE, UNKNOWN, MALFORMED, ALGORITHM = "valid", "signature", "unknown-key", "malformed", "algorithm"
CASES = [
    ("RS256", good, VALID),
    ("PS256", make(alg="PS256"), VALID),
    ("ES256", make(key=ec, alg="ES256"), VALID),
    ("a key that is for RS256 alone", make(key=only_rs), VALID),
    ("several audiences with azp", make(aud=["other", CLIENT], azp=CLIENT), VALID),
    ("one audience in a list", make(aud=[CLIENT]), VALID),
    ("azp of this client", make(azp=CLIENT), VALID),
    ("expired within the leeway", make(exp=NOW - 59), VALID),
    ("issued within the leeway", make(iat=NOW + 59), VALID),
    ("times with fractions", make(exp=NOW + 0.5, iat=NOW - 0.5), VALID),
    ("not before a time that has come", make(nbf=NOW - 10), VALID),
    ("authenticated just now", make(), VALID, 300),
    ("authenticated within the leeway", make(auth_time=NOW - 359), VALID, 300),
    ("other claims", tampered(good, with_claims), SIGNATURE),
    ("a flipped bit of RS256", tampered(good, with_flipped_bit), SIGNATURE),
    ("a flipped bit of PS256", tampered(make(alg="PS256"), with_flipped_bit), SIGNATURE),
    ("a flipped bit of ES256", tampered(make(key=ec, alg="ES256"), with_flipped_bit), SIGNATURE),
    ("another header", tampered(good, with_header(typ="JWT")), SIGNATURE),
    ("RS256 read as PS256", tampered(good, with_header(alg="PS256")), SIGNATURE),
    ("the key of another of the same name", make(key=stranger), SIGNATURE),
    ("another key of the set", tampered(make(key=spare), with_header(kid="rsa")), SIGNATURE),
    ("a key that is too small", make(key=small), SIGNATURE),
    ("ECDSA in the form of X.509", der_signature(), SIGNATURE),
    ("no signature", good.rsplit(".", 1)[0] + ".", SIGNATURE),
    ("alg none", unsigned("none"), ALGORITHM),
    ("alg None", unsigned("None"), ALGORITHM),
    ("alg of no kind", unsigned(""), ALGORITHM),
    ("HS256 with the public key as PEM", by_shared_secret(rsa.as_pem(private=False)), ALGORITHM),
    ("HS256 with the modulus", by_shared_secret(rsa.as_dict(private=False)["n"].encode()), ALGORITHM),
    ("RS384", make(alg="RS384"), ALGORITHM),
    ("ES384", make(key=p384, alg="ES384"), ALGORITHM),
    ("a kid that is not published", make(header={"kid": "other"}), UNKNOWN),
    ("a kid of another kind of key", make(header={"kid": "ec"}), UNKNOWN),
    ("PS256 by a key that is for RS256 alone", make(key=RSAKey.import_key(
        {name: value for name, value in only_rs.as_dict(private=True).items() if name != "alg"}), alg="PS256"), UNKNOWN),
    ("a key for encryption", make(key=RSAKey.import_key(
        {**encryption.as_dict(private=True), "use": "sig"})), UNKNOWN),
    ("no kid among several keys", make(header={"kid": None}), MALFORMED),
    ("an extension that has to be understood",
        tampered(good, with_header(crit=["b64"], b64=True)), MALFORMED),
    ("two parts", good.rsplit(".", 1)[0], MALFORMED),
    ("four parts", good + ".e30", MALFORMED),
    ("an encrypted token", "eyJhbGciOiJkaXIifQ....", MALFORMED),
    ("padding", tampered(good, lambda h, p, s: (h, p, s + "==")), MALFORMED),
    ("no token", "", MALFORMED),
    ("claims that are no object", jws.serialize_compact({"alg": "RS256", "kid": "rsa"}, b"[]", rsa), MALFORMED),
    ("expired", make(exp=NOW - 60), "exp"),
    ("no end", make(without=["exp"]), "exp"),
    ("an end that is a text", make(exp=str(NOW + 300)), "exp"),
    ("an end beyond all times", make(exp=10**30), "exp"),
    ("issued in the future", make(iat=NOW + 61), "iat"),
    ("no time of issue", make(without=["iat"]), "iat"),
    ("not before a time to come", make(nbf=NOW + 61), "nbf"),
    ("another nonce", make(nonce="other"), "nonce"),
    ("no nonce", make(without=["nonce"]), "nonce"),
    ("another issuer", make(iss="https://evil.example"), "iss"),
    ("the issuer with a slash", make(iss=ISSUER + "/"), "iss"),
    ("no issuer", make(without=["iss"]), "iss"),
    ("another audience", make(aud="other"), "aud"),
    ("other audiences", make(aud=["other", "others"]), "aud"),
    ("no audience", make(without=["aud"]), "aud"),
    ("an empty list of audiences", make(aud=[]), "aud"),
    ("several audiences without azp", make(aud=[CLIENT, "other"]), "azp"),
    ("another azp", make(azp="other"), "azp"),
    ("another azp among several audiences", make(aud=[CLIENT, "other"], azp="other"), "azp"),
    ("no subject", make(without=["sub"]), "sub"),
    ("an empty subject", make(sub=""), "sub"),
    ("a subject that is too long", make(sub="a" * 256), "sub"),
    ("authenticated too long ago", make(auth_time=NOW - 361), "auth_time", 300),
    ("no time of authentication", make(without=["auth_time"]), "auth_time", 300),
    ("authenticated in the future", make(auth_time=NOW + 61), "auth_time"),
]

# The implementation that makes the tokens believes those that are valid, as a provider's other clients would.
published = {"keys": [key.as_dict(private=False) for key in PUBLISHED]}
by_kid = {key.kid: key for key in PUBLISHED}
for name, token, outcome, *_ in CASES:
    if outcome == VALID:
        kid = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))["kid"]
        assert jwt.decode(token, by_kid[kid], algorithms=["RS256", "PS256", "ES256"]).claims["sub"] == "7f3a", name

json.dump(
    {
        "issuer": ISSUER, "clientId": CLIENT, "nonce": NONCE, "now": NOW, "jwks": published,
        "cases": [
            {"name": name, "token": token, "outcome": outcome, **({"maxAge": rest[0]} if rest else {})}
            for name, token, outcome, *rest in CASES
        ],
    },
    sys.stdout, indent=1,
)
print()
