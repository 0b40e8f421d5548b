"""LLaMA and Qwen3 in plain Python, for the stand-ins of servers: log-probabilities
that are those of given weights, in double precision."""
import math
import operator
import struct


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def dot(a, b):
    return sum(map(operator.mul, a, b))


def times(rows, vector):
    return [dot(row, vector) for row in rows]


class Model:
    """A decoder of one sequence at a time, in double precision."""

    def __init__(self, config, tensors):
        self.config, self.tensors = config, {}
        for name, (shape, data) in tensors.items():
            values = floats(data)
            self.tensors[name] = values if len(shape) == 1 else [
                values[i:i + shape[1]] for i in range(0, len(values), shape[1])]
        self.heads = config["num_attention_heads"]
        self.kv_heads = config.get("num_key_value_heads", self.heads)
        self.width = config.get("head_dim") or config["hidden_size"] // self.heads
        theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
        half = self.width // 2
        self.rates = [theta ** (-i / half) for i in range(half)]

    def norm(self, vector, weight):
        scale = 1 / math.sqrt(dot(vector, vector) / len(vector)
                              + self.config["rms_norm_eps"])
        return [v * scale * w for v, w in zip(vector, weight)]

    def rotated(self, head, position, norm):
        if norm in self.tensors:
            head = self.norm(head, self.tensors[norm])
        half, out = self.width // 2, list(head)
        for i, rate in enumerate(self.rates):
            c, s = math.cos(position * rate), math.sin(position * rate)
            out[i] = head[i] * c - head[i + half] * s
            out[i + half] = head[i + half] * c + head[i] * s
        return out

    def split(self, vector, count):
        return [vector[i * self.width:(i + 1) * self.width] for i in range(count)]

    def attention(self, layer, x, cache, position):
        p = f"model.layers.{layer}.self_attn."
        of = self.tensors
        heads = [self.rotated(h, position, p + "q_norm.weight") for h in
                 self.split(times(of[p + "q_proj.weight"], x), self.heads)]
        keys = [self.rotated(h, position, p + "k_norm.weight") for h in
                self.split(times(of[p + "k_proj.weight"], x), self.kv_heads)]
        values = self.split(times(of[p + "v_proj.weight"], x), self.kv_heads)
        cache.append((keys, values))
        out, share = [], self.heads // self.kv_heads
        for h, query in enumerate(heads):
            scores = [dot(query, k[h // share]) / math.sqrt(self.width)
                      for k, _ in cache]
            top = max(scores)
            weights = [math.exp(s - top) for s in scores]
            total = sum(weights)
            columns = zip(*(v[h // share] for _, v in cache))
            out += [dot(weights, column) / total for column in columns]
        return times(of[p + "o_proj.weight"], out)

    def mlp(self, layer, x):
        p = f"model.layers.{layer}.mlp."
        gate = times(self.tensors[p + "gate_proj.weight"], x)
        up = times(self.tensors[p + "up_proj.weight"], x)
        inner = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)]
        return times(self.tensors[p + "down_proj.weight"], inner)

    def step(self, token, caches):
        """Feeds a token; the log-probabilities of the next one."""
        x = list(self.tensors["model.embed_tokens.weight"][token])
        position = len(caches[0])
        for layer, cache in enumerate(caches):
            p = f"model.layers.{layer}."
            inner = self.norm(x, self.tensors[p + "input_layernorm.weight"])
            x = [a + b for a, b in
                 zip(x, self.attention(layer, inner, cache, position))]
            inner = self.norm(x, self.tensors[p + "post_attention_layernorm.weight"])
            x = [a + b for a, b in zip(x, self.mlp(layer, inner))]
        x = self.norm(x, self.tensors["model.norm.weight"])
        head = self.tensors.get("lm_head.weight",
                                self.tensors["model.embed_tokens.weight"])
        logits = times(head, x)
        top = max(logits)
        total = top + math.log(sum(math.exp(v - top) for v in logits))
        return [v - total for v in logits]

    def empty(self):
        return [[] for _ in range(self.config["num_hidden_layers"])]
