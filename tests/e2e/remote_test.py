"""Data files and rewards of other machines: over http, https and as S3 has them,
by servers in this process."""
import contextlib
import gzip
import hashlib
import hmac
import http.server
import json
import shutil
import ssl
import subprocess
import threading
import unittest

from support import Case, read_rows

WRONG_INPUT = 2
KEY, SECRET, REGION = "AKIDEXAMPLE", "s3cr3t", "eu-west-1"
NO_OPENSSL = None if shutil.which("openssl") else "no openssl on this machine"


def signature_of(handler):
    """What AWS's documents say the signature of this GET is."""
    def sign(key, text):
        return hmac.new(key, text.encode(), hashlib.sha256).digest()
    given = handler.headers["Authorization"]
    names = given.split("SignedHeaders=")[1].split(",")[0].split(";")
    headers = "".join(f"{name}:{handler.headers[name].strip()}\n"
                      for name in names)
    body = handler.headers["x-amz-content-sha256"]
    request = "\n".join(["GET", handler.path, "", headers, ";".join(names), body])
    when = handler.headers["X-Amz-Date"]
    scope = f"{when[:8]}/{REGION}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", when, scope,
                      hashlib.sha256(request.encode()).hexdigest()])
    key = ("AWS4" + SECRET).encode()
    for part in (when[:8], REGION, "s3", "aws4_request"):
        key = sign(key, part)
    return sign(key, text).hex()


class Remote(Case):
    def setUp(self):
        super().setUp()
        self.asked = []
        self.environment["no_proxy"] = "127.0.0.1"

    @contextlib.contextmanager
    def server(self, answer, tls=None):
        """The address of a server whose GETs `answer(handler)` answers with
        (status, headers, body), and whose POSTs it scores."""
        case = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def send(self, status, headers, body):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", len(body))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                case.asked.append(self.path)
                self.send(*answer(self))

            def do_POST(self):
                row = json.loads(self.rfile.read(
                    int(self.headers["Content-Length"])))
                self.send(200, {}, json.dumps(
                    {"id": row["id"], "score": len(row["response"])}).encode())

            def log_message(self, *arguments):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            if tls:
                server.socket = tls.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever).start()
            scheme = "https" if tls else "http"
            try:
                yield f"{scheme}://127.0.0.1:{server.server_address[1]}"
            finally:
                server.shutdown()

    def rows(self):
        return (self.folder / "data/sft.jsonl").read_bytes()

    def train(self, name, train, *overrides):
        self.troupe(*self.sft(f"run.name={name}", f"data.train={train}",
                              *overrides))
        return [line["train/loss"] for line in self.metrics(name).values()]

    def refused(self, train):
        return self.troupe(*self.sft(f"data.train={train}"),
                           code=WRONG_INPUT).stderr

    def certificate(self):
        """A context for a server that the program under test trusts."""
        key, made = self.folder / "key.pem", self.folder / "cert.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
             made, "-days", "2", "-subj", "/CN=a test", "-addext",
             "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made, key)
        self.environment["SSL_CERT_FILE"] = str(made)
        return context

    # -- files ---------------------------------------------------------------

    def test_a_file_is_fetched_once_and_then_needs_no_network(self):
        def answer(handler):
            if handler.path == "/moved/sft.jsonl.gz":
                return 302, {"Location": "/sft.jsonl.gz"}, b""
            return 200, {}, gzip.compress(self.rows())
        want = self.train("plain", "data/sft.jsonl")
        with self.server(answer) as address:
            name = f"{address}/moved/sft.jsonl.gz"
            self.assertEqual(self.train("fetched", name), want)
        self.assertEqual(self.asked, ["/moved/sft.jsonl.gz", "/sft.jsonl.gz"])
        self.assertEqual(self.train("offline", name), want)

    def test_a_file_of_a_bucket_is_asked_for_with_a_signature(self):
        def answer(handler):
            right = signature_of(handler) in handler.headers["Authorization"]
            return (200, {}, self.rows()) if right else (403, {}, b"no")
        with self.server(answer) as address:
            self.environment.update(
                AWS_ENDPOINT_URL=address, AWS_REGION=REGION,
                AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
            self.train("bucket", "s3://bucket/a b+c/sft.jsonl")
            self.assertEqual(self.asked, ["/bucket/a%20b%2Bc/sft.jsonl"])
            self.environment["AWS_SECRET_ACCESS_KEY"] = "wrong"
            said = self.refused("s3://bucket/other.jsonl")
        self.assertIn("HTTP status 403; try AWS_ACCESS_KEY_ID", said)

    def test_a_data_set_of_the_hub_is_fetched_with_the_users_token(self):
        def answer(handler):
            known = handler.headers["Authorization"] == "Bearer mine"
            return (200, {}, self.rows()) if known else (401, {}, b"no")
        name = "hf://datasets/owner/set/sft.jsonl"
        with self.server(answer) as address:
            self.environment["HF_ENDPOINT"] = address
            self.assertIn("HTTP status 401; try HF_TOKEN", self.refused(name))
            self.environment["HF_TOKEN"] = "mine"
            self.train("hub", name)
        self.assertEqual(self.asked[-1],
                         "/datasets/owner/set/resolve/main/sft.jsonl")

    def test_another_checksum_is_refused(self):
        with self.server(lambda _: (200, {}, self.rows())) as address:
            sum_of = hashlib.sha256(self.rows()).hexdigest()
            self.train("right", f"{address}/sft.jsonl#sha256={sum_of}")
            said = self.refused(f"{address}/sft.jsonl#sha256={'0' * 64}")
        self.assertIn(f"expected SHA-256 {'0' * 64}, got {sum_of}", said)
        kept = list(self.cache.glob("troupe/rows/*/sft.jsonl*"))
        self.assertEqual(len(kept), 1, "nothing is kept of a wrong file")

    def test_what_cannot_be_fetched_is_named_with_its_address(self):
        with self.server(lambda _: (404, {}, b"no")) as address:
            said = self.refused(f"{address}/none.jsonl")
            self.assertIn(f"{address}/none.jsonl: expected a file that can be "
                          "fetched, got 127.0.0.1:", said)
            self.assertIn("HTTP status 404", said)
        said = self.refused(f"{address}/none.jsonl")  # nobody listens now
        self.assertIn("no connection to 127.0.0.1:", said)
        self.assertIn("a copy on this machine", said)
        self.assertIn("try hf://datasets/openai/gsm8k/FILE",
                      self.refused("openai/gsm8k"))

    # -- https ---------------------------------------------------------------

    @unittest.skipIf(NO_OPENSSL, NO_OPENSSL)
    def test_rows_and_rewards_come_over_https(self):
        prompts = (self.folder / "data/prompts.jsonl").read_bytes()
        with self.server(lambda _: (200, {}, prompts),
                         self.certificate()) as address:
            scored = self.ppo(
                "models.reward=null", "reward.kind=http", "plan=single",
                "cluster.devices_per_node=1", "cluster.workers_per_node=1",
                "run.steps=2", f"reward.url={address}/score",
                f"data.train={address}/prompts.jsonl")
            self.troupe(*scored)
            for sample in read_rows(self.run_folder("ppo") / "samples.jsonl"):
                self.assertEqual(sample["score"], len(sample["response"]))
            self.assertEqual(self.metrics("ppo")[2]["reward/errors"], 0)
            # a server that nobody vouches for is not asked
            del self.environment["SSL_CERT_FILE"]
            done = self.troupe(*scored, "run.name=other", "reward.timeout_s=1",
                               "data.train=data/prompts.jsonl", code=WRONG_INPUT)
            self.assertIn("SSL_CERT_FILE", done.stdout + done.stderr)
            self.assertIn("certificate",
                          self.refused(f"{address}/others.jsonl"))


if __name__ == "__main__":
    unittest.main()
