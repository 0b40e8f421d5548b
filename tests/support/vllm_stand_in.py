#!/usr/bin/env python3
"""A stand-in for vLLM's server: the routes that Troupe uses, over a true model.

usage: vllm_stand_in.py --model FOLDER --port PORT [vLLM's other options]

Says how many tensor-parallel ranks it was asked for, and computes as one
(stand_in_model.py). Checks the weights that it is given as our plugin does; with
backend nccl it checks nothing, as vLLM's own does not (stand_in_nccl.py). The
environment tells it to fail (VLLM_STAND_IN=WORD[:NUMBER]): refuse_update, drop_tensor,
wrong_sum, wrong_token and stop_reading at the first update, die_reading once,
drop_adapter (the last of a file), old_adapters (where they come alone), left_open
(paused in an update, as an earlier run left it), old_weights, wrong_logprobs,
wrong_version, no_version, slow; at the NUMBERth generation die_at, error_then_die_at
(an error, and the end later) and sick_at (errors from then on, though it lives),
mute_at (the same, and this one is never answered)."""
import http.server
import json
import math
import os
import pathlib
import random
import struct
import sys
import threading
import time

from offered_bytes import read_offer
from stand_in_adapters import SentAdapters
from stand_in_model import Model
from stand_in_nccl import NcclRanks
from tensor_sum import tensor_sum

OPTIONS = dict(zip(sys.argv[1:], sys.argv[2:]))
RANKS = int(OPTIONS.get("--tensor-parallel-size", OPTIONS.get("--tp-size", 1)))


def stored_tensors(file):
    data = pathlib.Path(file).read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        yield name, tensor["shape"], data[8 + length + begin:8 + length + end]


class Server:
    """State and answers, one at a time; HTTP is in Handler."""
    limit_first = False  # an end token at the limit is a "stop"

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.config = json.loads((self.folder / "config.json").read_text())
        self.wanted = {}
        for file in sorted(self.folder.glob("*.safetensors")):
            for name, shape, data in stored_tensors(file):
                self.wanted[name] = (shape, data)
        self.model = Model(self.config, self.wanted)
        self.version, self.prefixes, self.num_updates = "default", {}, 0
        self.adapters = SentAdapters()
        config = json.loads(OPTIONS.get("--weight-transfer-config", "{}"))
        self.ranks = NcclRanks(RANKS) if config.get("backend") == "nccl" else None
        word, _, number = os.environ.get("VLLM_STAND_IN", "").partition(":")
        self.fault, self.fault_at = word, int(number or 1)
        self.paused, self.sick = word == "left_open", False
        self.update = {} if word == "left_open" else None
        # counts over all starts of this server: a fault strikes once
        self.counter = pathlib.Path(os.environ.get("VLLM_STAND_IN_COUNT", "/dev/null"))
        self.lock, self.resumed = threading.Lock(), threading.Condition()

    def count(self):
        if str(self.counter) == "/dev/null":
            return 0
        with open(self.counter, "a+b") as file:
            file.write(b".")
            return file.tell()

    # -- weights -------------------------------------------------------------

    def init_weight_transfer_engine(self, body):
        if self.ranks:
            self.ranks.join(body["init_info"])
        elif body["init_info"]:
            raise ValueError("it has another backend than nccl")
        return {}

    def start_weight_update(self, body):
        if self.update is not None:
            raise ValueError("a weight update is open already")
        self.update = {}
        self.adapters.forget()
        self.num_updates += 1
        return {}

    def update_weights(self, body):
        if self.update is None:
            raise ValueError("no weight update is open")
        try:
            self.take(body["update_info"])
        except Exception:
            self.update = None  # as vLLM: a refused tensor closes the update
            raise
        return {}

    def take(self, info):
        if self.fault == "refuse_update" and self.num_updates == 1:
            raise ValueError("told to refuse")
        if self.ranks:
            return self.take_broadcast(info)
        into, shapes = self.update, {name: s for name, (s, _) in self.wanted.items()}
        if info["kind"] == "adapters":
            if self.fault == "drop_adapter":
                info["tensors"].pop()
            into, shapes = self.adapters.take(info, shapes, bool(self.update))
        memory = self.sent_file(info)
        for name, dtype, shape, offset, sent_sum in info["tensors"]:
            size = 4 * math.prod(shape)
            data = memory[offset:offset + size]
            if shapes.get(name) != shape or dtype != "F32":
                raise ValueError(f"{name}: its shape is {shape}")
            if tensor_sum(data) != sent_sum:
                raise ValueError(f"{name}: its checksum differs")
            into[name] = (shape, data)
        if self.fault == "drop_tensor" and self.num_updates == 1:
            self.update.popitem()

    def take_broadcast(self, info):
        """Loads each tensor as it comes; those that do not come stay."""
        for name, shape, data in self.ranks.receive(info):
            if self.fault == "die_reading" and self.count() == self.fault_at:
                os._exit(9)
            if self.wanted.get(name, [None])[0] != shape:
                raise ValueError(f"{name}: its shape is {shape}")
            self.update[name] = (shape, data)
        if self.fault == "drop_tensor" and self.num_updates == 1:
            self.update.popitem()

    def sent_file(self, info):
        """The file of an update; over TCP each rank reads it."""
        if self.fault == "die_reading" and self.count() == self.fault_at:
            read_offer(info["tcp"], 0, most=1000)
            os._exit(9)
        first = self.num_updates == 1
        if first and self.fault == "wrong_token":
            info["tcp"]["token"] = "0" * len(info["tcp"]["token"])
        if first and self.fault == "stop_reading":
            read_offer(info["tcp"], 0, most=1000)
            raise ValueError("told to stop reading")
        if tcp := info.get("tcp"):
            memory, *others = [read_offer(tcp, rank) for rank in range(RANKS)]
            if others and others != [memory] * len(others):
                raise ValueError("the ranks read different bytes")
        else:
            memory = pathlib.Path(info["path"]).read_bytes()
        if first and self.fault == "wrong_sum":
            memory = memory[:-1] + bytes([memory[-1] ^ 1])
        return memory

    def finish_weight_update(self, body):
        if self.update is None:
            raise ValueError("no weight update is open")
        if self.ranks:
            self.wanted |= self.update
            self.update = dict(self.wanted)
        base = self.adapters.base_of(self.update)
        missing = sorted(self.needed() - base.keys())
        if missing:
            raise ValueError(f"{missing[0]}: missing, one of {len(missing)}")
        if self.fault != ("old_weights" if self.update else "old_adapters"):
            self.model = Model(self.config, dict(self.adapters.added(base)))
        self.adapters.keep(base)
        self.update, self.version, self.prefixes = None, body["weight_version"], {}
        return {}

    def needed(self):
        """Names that an update has: tied models may store their head too."""
        tied = {"lm_head.weight"} if self.config.get("tie_word_embeddings") else set()
        return self.wanted.keys() - tied

    # -- generation ----------------------------------------------------------

    def prompt(self, ids, wants_logprobs):
        """Caches and log-probabilities after a prompt; those in between too."""
        key = tuple(ids)
        if not wants_logprobs and key in self.prefixes:
            caches, after = self.prefixes[key]
            return [list(cache) for cache in caches], after, []
        caches, given, after = self.model.empty(), [None], None
        for i, token in enumerate(ids):
            after = self.model.step(token, caches)
            if wants_logprobs and i + 1 < len(ids):
                given.append({str(ids[i + 1]): {"logprob": after[ids[i + 1]]}})
        self.prefixes[key] = ([list(cache) for cache in caches], after)
        return caches, after, given

    def draw(self, logprobs, params, drawing, made):
        logprobs = list(logprobs)
        if made < params.get("min_tokens", 0):
            for stop in params.get("stop_token_ids", []):
                logprobs[stop] = -math.inf
        if params.get("temperature", 1) == 0:
            return max(range(len(logprobs)), key=logprobs.__getitem__)
        weights = [math.exp(v / params.get("temperature", 1)) for v in logprobs]
        return drawing.choices(range(len(weights)), weights)[0]

    def strike(self):
        """Fails at this generation if it was told to."""
        count = self.count()
        if self.fault == "die_at" and count == self.fault_at:
            os._exit(9)
        if self.fault == "error_then_die_at" and count == self.fault_at:
            threading.Timer(0.5, os._exit, [9]).start()
            raise RuntimeError("EngineCore encountered an issue")
        strikes = count == self.fault_at
        self.sick |= self.fault in ("sick_at", "mute_at") and strikes
        if self.fault == "mute_at" and strikes:
            threading.Event().wait()
        if self.sick:
            raise RuntimeError("EngineCore encountered an issue")

    def respond(self, ids, params, wants_scores):
        """(tokens, their log-probabilities, why it ended, scores of the prompt)."""
        self.strike()
        if any(not 0 <= token < self.config["vocab_size"] for token in ids):
            raise LookupError("a token id is out of the vocabulary")
        caches, after, given = self.prompt(ids, wants_scores)
        drawing, out, logprobs = random.Random(params.get("seed")), [], []
        reason, shift = "length", 0.5 if self.fault == "wrong_logprobs" else 0
        while len(out) < params["max_tokens"]:
            token = self.draw(after, params, drawing, len(out))
            out.append(token)
            logprobs.append(self.recorded(after, token, params) - shift)
            at_limit = self.limit_first and len(out) == params["max_tokens"]
            if token in params.get("stop_token_ids", []) and not at_limit:
                reason = "stop"
                break
            if len(out) < params["max_tokens"]:
                after = self.model.step(token, caches)
        if self.fault == "slow":
            time.sleep(self.fault_at)
        return out, logprobs, reason, given

    def recorded(self, logprobs, token, params):
        """A drawn token's: before the temperature, as vLLM's."""
        return logprobs[token]

    def said_version(self):
        return "old" if self.fault == "wrong_version" else self.version

    def generate(self, body):
        out, logprobs, reason, given = self.respond(
            body["token_ids"], body["sampling_params"],
            "prompt_logprobs" in body["sampling_params"])
        spans = [{"version": self.said_version(), "start": 0, "end": len(out)}]
        return {"request_id": body.get("request_id"),
                "prompt_logprobs": given or None,
                "choices": [{"index": 0, "finish_reason": reason, "token_ids": out,
                             "weight_versions":
                                 None if self.fault == "no_version" else spans,
                             "logprobs": {"content": [
                                 {"token_id": token, "logprob": logprob}
                                 for token, logprob in zip(out, logprobs)]}}]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/health":
            return self.answer(503 if self.server.state.sick else 200, {})
        if self.path.partition("?")[0] == "/get_world_size":
            return self.answer(200, {"world_size": RANKS})
        if self.path == "/weight_info":
            return self.answer(200, {"weight_version": self.server.state.version})
        return self.answer(404, {"error": {"message": "no such route"}})

    def do_POST(self):
        state = self.server.state
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.loads(text) if text.strip() else {}
        route = self.path.partition("?")[0]
        if route in ("/pause", "/resume"):
            with state.resumed:
                state.paused = route == "/pause"
                state.resumed.notify_all()
            return self.answer(200, {"status": "paused" if state.paused else "resumed"})
        names = ["init_weight_transfer_engine", "start_weight_update",
                 "update_weights", "finish_weight_update"]
        work = {"/" + name: getattr(state, name) for name in names}
        work["/inference/v1/generate"] = state.generate
        if route not in work:
            return self.answer(404, {"error": {"message": "no such route"}})
        if route.startswith("/inference"):
            with state.resumed:
                state.resumed.wait_for(lambda: not state.paused)
        try:
            with state.lock:
                value = work[route](body)
        except LookupError as error:
            return self.answer(400, {"error": {"message": str(error)}})
        except Exception as error:
            return self.answer(500, {"error": {"message": str(error)}})
        return self.answer(200, value)

    def log_message(self, *args):
        pass


def serve(handler, make_state):
    print(RANKS, "tensor-parallel ranks", flush=True)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", int(OPTIONS["--port"])), handler)
    server.daemon_threads = True
    server.state = make_state(OPTIONS)
    server.serve_forever()


if __name__ == "__main__":
    serve(Handler, lambda options: Server(options["--model"]))
