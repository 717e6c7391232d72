"""The signature with its first blocks hashed beforehand is HMAC-SHA256, as the standard library has
it.
"""

import base64
import hmac
import os
import threading
import unittest

from postrider_webhooks.signature import Signer


class HmacTest(unittest.TestCase):
    def test_it_equals_hmac_for_every_length_of_a_key_and_many_bodies(self) -> None:
        for key_bytes in range(24, 65):
            key = os.urandom(key_bytes)
            signer = Signer(key)
            for body_bytes in (0, 1, 55, 56, 63, 64, 65, 1024, 4096):
                prefix, body = b"evt_1.1753000000.", os.urandom(body_bytes)
                wanted = base64.b64encode(hmac.digest(key, prefix + body, "sha256"))
                self.assertEqual(signer.sign(prefix, body), b"v1," + wanted)

    def test_threads_can_share_one(self) -> None:
        signer = Signer(bytes(32))
        # Long enough for the hash to let other threads run meanwhile.
        bodies = [bytes([number]) * 65_536 for number in range(8)]
        wanted = [signer.sign(b"", body) for body in bodies]
        wrong: list[int] = []

        def work(number: int) -> None:
            for _ in range(50):
                if signer.sign(b"", bodies[number]) != wanted[number]:
                    wrong.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
