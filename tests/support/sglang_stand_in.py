#!/usr/bin/env python3
"""A stand-in for SGLang's server: the routes that Troupe uses, over the model of
vllm_stand_in.py, with the faults of that (VLLM_STAND_IN) that SGLang may have.

usage: sglang_stand_in.py --model-path FOLDER --port PORT [SGLang's other options]

Like SGLang it checks no sums and keeps old values of tensors that are missing."""
import json
import math
import pathlib

from vllm_stand_in import Handler, Model, Server, serve, stored_tensors

NAMES = {"max_new_tokens": "max_tokens", "sampling_seed": "seed"}


class Sglang(Server):
    limit_first = True

    def __init__(self, folder):
        super().__init__(folder)
        self.tensors = dict(self.wanted)

    def update_weights_from_disk(self, body):
        self.num_updates += 1
        if self.fault == "refuse_update" and self.num_updates == 1:
            raise ValueError("told to refuse")
        tensors = {}
        for file in sorted(pathlib.Path(body["model_path"]).glob("*.safetensors")):
            tensors |= {name: (shape, data)
                        for name, shape, data in stored_tensors(file)}
        if not tensors:
            raise ValueError("cannot find any model weights")
        if self.fault == "drop_tensor" and self.num_updates == 1:
            tensors.popitem()
        if self.fault != "old_weights":
            self.tensors |= tensors
            self.model = Model(self.config, self.tensors)
        self.version, self.prefixes = body["weight_version"], {}
        return {"success": True, "message": "Succeeded to update model weights."}

    def recorded(self, logprobs, token, params):
        """After the temperature, as SGLang's."""
        temperature = params.get("temperature", 1) or 1
        scaled = [value / temperature for value in logprobs]
        return scaled[token] - math.log(sum(map(math.exp, scaled)))

    def generate(self, body):
        params = {NAMES.get(name, name): value
                  for name, value in body["sampling_params"].items()}
        if params.get("ignore_eos"):
            params.pop("stop_token_ids", None)
        ids, scored = body["input_ids"], body.get("logprob_start_len") == 0
        out, logprobs, reason, given = self.respond(ids, params, scored)
        meta = {"finish_reason": {"type": reason}, "prompt_tokens": len(ids),
                "completion_tokens": len(out),
                "output_token_logprobs": [[logprob, token, None] for logprob, token
                                          in zip(logprobs, out)]}
        if self.fault != "no_version":
            meta["weight_version"] = self.said_version()
        if scored:
            meta["input_token_logprobs"] = [
                [entry and entry[str(token)]["logprob"], token, None]
                for entry, token in zip(given, ids)]
        return {"text": "", "output_ids": out, "meta_info": meta}


class SglangHandler(Handler):
    def do_GET(self):
        state = self.server.state
        if self.path == "/health":
            return self.answer(503 if state.sick else 200, {})
        if self.path == "/model_info":
            return self.answer(200, {"weight_version": state.version})
        return self.answer(404, {"detail": "Not Found"})

    def do_POST(self):
        state = self.server.state
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path in ("/pause_generation", "/continue_generation"):
            with state.resumed:
                state.paused = self.path == "/pause_generation"
                state.resumed.notify_all()
            return self.answer(200, {"status": "ok"})
        work = {"/generate": state.generate,
                "/update_weights_from_disk": state.update_weights_from_disk}
        if self.path not in work:
            return self.answer(404, {"detail": "Not Found"})
        if self.path == "/generate":
            with state.resumed:
                state.resumed.wait_for(lambda: not state.paused)
        try:
            with state.lock:
                value = work[self.path](body)
        except RuntimeError as error:
            return self.answer(500, {"error": {"message": str(error)}})
        except Exception as error:
            return self.answer(400, {"success": False, "message": str(error)})
        return self.answer(200, value)


if __name__ == "__main__":
    serve(SglangHandler, lambda options: Sglang(options["--model-path"]))
