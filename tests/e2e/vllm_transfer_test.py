"""How weights come to a vLLM server (models/servers/vllm_plugin/troupe_transfer.py):
sums by NumPy that are those of plain Python, and bytes over TCP."""
import pathlib
import secrets
import socket
import subprocess
import sys
import threading
import types
import unittest

from support import SOURCE, with_numpy

PLUGIN = SOURCE / "models/servers/vllm_plugin"
sys.path[:0] = [str(SOURCE / "tests/support"), str(PLUGIN)]

from tensor_sum import pattern, tensor_sum  # noqa: E402

NUMPY = with_numpy()
CHUNK = 256 << 10
SIZES = [0, 1, 7, 8, 64, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 43]


def load_transfer():
    """The module under test, also where NumPy is missing: then without sums."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        sys.modules["numpy"] = types.SimpleNamespace()
    import troupe_transfer
    return troupe_transfer


class Offer:
    """Bytes at a port, for one reader that knows the token; at most `most`."""

    def __init__(self, data, most=None):
        self.data, self.most, self.greeting = data, most, ""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.tcp = {"host": "127.0.0.1", "port": self.listener.getsockname()[1],
                    "token": secrets.token_hex(32), "certificate": "",
                    "bytes": len(data)}
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def serve(self):
        try:
            stream, _ = self.listener.accept()
            with stream:
                while len(self.greeting) < 72:
                    self.greeting += stream.recv(72).decode()
                if self.greeting.startswith(self.tcp["token"]):
                    stream.sendall(self.data[:self.most])
        except OSError:
            pass  # the reader went before the end

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.thread.join()


@unittest.skipUnless(NUMPY, "no numpy on this machine: make trackers")
class Sums(unittest.TestCase):
    def test_sums_of_numpy_are_those_of_plain_python(self):
        program = ("import troupe_transfer, tensor_sum\n"
                   f"for size in {SIZES}:\n"
                   "    data = memoryview(bytearray(tensor_sum.pattern(size)))\n"
                   "    print(troupe_transfer.tensor_sum(data))\n")
        path = f"{PLUGIN}:{SOURCE / 'tests/support'}"
        done = subprocess.run(
            [pathlib.Path(NUMPY) / "python3", "-B", "-W", "error", "-c", program],
            env={"PYTHONPATH": path}, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.split(),
                         [tensor_sum(pattern(size)) for size in SIZES])


class Streams(unittest.TestCase):
    def setUp(self):
        self.transfer = load_transfer()

    def read(self, offer, size, tcp=None, begin=0):
        place = memoryview(bytearray(size))
        with self.transfer.opened("", (tcp or offer.tcp) | {"rank": 3}, begin) as stream:
            stream.read_into(begin, place)
        return bytes(place)

    def test_the_bytes_are_those_that_are_offered(self):
        data = pattern(300_001)
        with Offer(data) as offer:
            self.assertEqual(self.read(offer, 300_000, begin=1), data[1:])
            self.assertEqual(offer.greeting, offer.tcp["token"] + "00000003")

    def test_threads_read_their_parts_in_any_order(self):
        data = pattern(100_000)
        with Offer(data) as offer:
            places = [memoryview(bytearray(10_000)) for _ in range(10)]
            with self.transfer.opened("", offer.tcp | {"rank": 0}, 0) as stream:
                threads = [threading.Thread(target=stream.read_into,
                                            args=(10_000 * i, places[i]))
                           for i in reversed(range(10))]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            self.assertEqual(b"".join(places), data)

    def test_a_wrong_token_gets_nothing(self):
        with Offer(pattern(100)) as offer:
            with self.assertRaisesRegex(
                    ValueError, "ended after 0 of 100|failed after 0 of 100"):
                self.read(offer, 100, offer.tcp | {"token": "0" * 64})

    def test_more_than_an_update_has_is_not_read(self):
        with Offer(pattern(100)) as offer:
            with self.assertRaisesRegex(ValueError, "after the 100 bytes"):
                self.read(offer, 101)

    def test_nobody_there_is_named(self):
        offer = Offer(b"")
        offer.listener.close()
        with self.assertRaisesRegex(
                ValueError, f"127.0.0.1:{offer.tcp['port']}: .*refused"):
            self.read(offer, 1)

    def test_one_that_sends_nothing_is_left_at_the_deadline(self):
        self.transfer.SILENT_S = 0.1
        self.addCleanup(setattr, self.transfer, "SILENT_S", 60)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            tcp = {"host": "127.0.0.1", "port": silent.getsockname()[1],
                   "token": "0" * 64, "certificate": "", "bytes": 9}
            with self.assertRaisesRegex(ValueError, "0 of 9 bytes: timed out"):
                self.read(None, 9, tcp)


if __name__ == "__main__":
    unittest.main()
