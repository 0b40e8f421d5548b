"""Our plugin for vLLM, which this test gives the few names of torch and vLLM that
it uses: which tensors an update may and must have, and what it refuses. With the
real ones it runs in tests/soak/real_vllm.py."""
import importlib.util
import json
import math
import operator
import pathlib
import sys
import tempfile
import types
import unittest

from vllm_transfer_test import Offer, load_transfer, tensor_sum

PLUGIN = (pathlib.Path(__file__).resolve().parents[2]
          / "models/servers/vllm_plugin/troupe_vllm.py")
# A model, and the adapters of its only matrix of a layer.
ADAPTED = {"model.norm.weight": [4], "model.layers.0.mlp.up_proj.weight": [6, 4]}
ADAPTERS = {f"base_model.model.model.layers.0.mlp.up_proj.lora_{end}.weight": shape
            for end, shape in (("A", [2, 4]), ("B", [6, 2]))}


class Tensor:
    """As much of a torch tensor as the plugin uses: bytes."""

    def __init__(self, shape):
        self.nbytes = 4 * math.prod(shape)
        self.bytes = bytearray(self.nbytes)

    def view(self, _):
        return self

    def numpy(self):
        return self.bytes


class Base:
    """As much of vLLM's WeightTransferEngine."""

    def __class_getitem__(cls, _):
        return cls

    def parse_update_info(self, info):
        return self.update_info_cls(**info)


class Embedding:
    """A layer of vLLM whose product uses a copy of its weights, packed when these
    were loaded."""
    weight = packed = None

    def __init__(self):
        self.quant_method = types.SimpleNamespace(
            process_weights_after_loading=lambda layer: setattr(
                layer, "packed", layer.weight))


class Head(Embedding):
    pass


class Matrix:
    """As much of a torch tensor as the sum of a weight and its adapter uses."""
    dtype = "f32"

    def __init__(self, rows):
        self.rows = rows

    def float(self):
        return self

    def to(self, _):
        return self

    def __matmul__(self, other):
        columns = list(zip(*other.rows))
        return Matrix([[sum(map(operator.mul, row, column)) for column in columns]
                       for row in self.rows])

    def __rmul__(self, factor):
        return Matrix([[factor * value for value in row] for row in self.rows])

    def __add__(self, other):
        return Matrix([list(map(operator.add, *rows))
                       for rows in zip(self.rows, other.rows)])


def load_plugin():
    loaded, reload = [], "vllm.model_executor.model_loader.reload"
    embeddings = "vllm.model_executor.layers.vocab_parallel_embedding"
    torch = types.SimpleNamespace(
        float32="f32", bfloat16="bf16", float16="f16", uint8="u8",
        empty=lambda shape, dtype: Tensor(shape))
    base = types.SimpleNamespace(
        WeightTransferEngine=Base, WeightTransferInitInfo=object,
        WeightTransferUpdateInfo=object)
    modules = {
        "torch": torch, "vllm": types.SimpleNamespace(),
        "vllm.distributed.weight_transfer.base": base,
        embeddings: types.SimpleNamespace(
            VocabParallelEmbedding=Embedding, ParallelLMHead=Head),
        reload: types.SimpleNamespace(
            initialize_layerwise_reload=lambda model: None,
            finalize_layerwise_reload=lambda model, config: None)}
    for name in list(modules):
        while "." in name:
            name = name.rpartition(".")[0]
            modules.setdefault(name, types.SimpleNamespace())
    sys.modules.update(modules)
    sys.path.insert(0, str(PLUGIN.parent))
    spec = importlib.util.spec_from_file_location("troupe_vllm", PLUGIN)
    plugin = importlib.util.module_from_spec(spec)
    load_transfer()
    spec.loader.exec_module(plugin)
    plugin.tensor_sum = tensor_sum  # without NumPy
    return plugin, loaded


class Plugin(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="troupe-e2e-")
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.plugin, self.loaded = load_plugin()

    def engine(self, tensors, tied=False):
        """The plugin's engine of a model whose file has {name: shape}."""
        header, at = {"__metadata__": {"format": "pt"}}, 0
        for name, shape in tensors.items():
            size = 4 * math.prod(shape)
            header[name] = {"dtype": "F32", "shape": shape,
                            "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        (self.path / "model.safetensors").write_bytes(
            len(text).to_bytes(8, "little") + text + bytes(at))
        engine = self.plugin.ShmEngine()
        engine.model_config = types.SimpleNamespace(
            model=str(self.path),
            hf_text_config=types.SimpleNamespace(tie_word_embeddings=tied))
        engine.parallel_config = types.SimpleNamespace(
            rank=1, world_size=2, data_parallel_index=2)
        self.parts = [Embedding(), Head()]
        engine.model = types.SimpleNamespace(
            modules=lambda: self.parts, load_weights=self.load)
        engine.init_transfer_engine(None)
        return engine

    def load(self, tensors):
        """As vLLM: what is tied to the embedding is passed over."""
        self.loaded.extend(tensors)
        self.parts[0].weight = len(self.loaded)

    def sent(self, tensors, damage=False):
        """What an update says of a file of {name: shape}, the values of tensor i
        being bytes i."""
        memory, listed = b"", []
        for i, (name, shape) in enumerate(tensors.items()):
            data = bytes([i]) * (4 * math.prod(shape))
            listed.append([name, "F32", shape, len(memory),
                           tensor_sum(data)])
            memory += data
        file = self.path / f"memory_{len(list(self.path.iterdir()))}"
        file.write_bytes(memory[:-1] + b"!" if damage else memory)
        return {"path": str(file), "tensors": listed}

    def update(self, engine, tensors, damage=False):
        """Sends {name: shape}; the names that the model then got."""
        return self.update_by(engine, self.sent(tensors, damage))

    def update_by(self, engine, *files):
        self.loaded.clear()
        engine.start_weight_update()
        for file in files:
            engine.update_weights(file)
        engine.finish_weight_update()
        return [name for name, _ in self.loaded]

    def test_a_whole_update_is_loaded_as_it_was_sent(self):
        whole = {"model.norm.weight": [4], "lm_head.weight": [3, 4]}
        engine = self.engine(whole)
        self.assertEqual(self.update(engine, whole), list(whole))
        self.assertEqual(bytes(self.loaded[1][1].bytes), bytes([1]) * 48)

    def test_tensors_that_threads_take_keep_order_and_names(self):
        whole = {f"model.layers.{i}.mlp.up_proj.weight": [1 + i % 3, 4096]
                 for i in range(50)}
        engine = self.engine(whole)
        self.assertEqual(self.update(engine, whole), list(whole))
        for i, (name, tensor) in enumerate(self.loaded):
            self.assertEqual(bytes(tensor.bytes), bytes([i]) * tensor.nbytes, name)
        with self.assertRaisesRegex(ValueError, "layers.49.*: its checksum"):
            self.update(engine, whole, damage=True)
        # of two mistakes the first
        wrong = whole | {"model.layers.7.mlp.up_proj.weight": [9, 9]}
        with self.assertRaisesRegex(ValueError, "layers.7.*: its shape"):
            self.update(engine, wrong, damage=True)

    def test_a_mistake_is_named_and_loads_nothing(self):
        whole = {"model.norm.weight": [4], "lm_head.weight": [3, 4]}
        engine = self.engine(whole)
        for sent, damage, words in (
                ({"model.norm.weight": [4]}, False, "lm_head.weight: missing"),
                (whole | {"lm_head.weight": [4, 3]}, False, "lm_head.weight: its shape"),
                (whole | {"other": [1]}, False, "other: its shape"),
                (whole, True, "lm_head.weight: its checksum")):
            with self.assertRaisesRegex(ValueError, words):
                self.update(engine, sent, damage)
            self.assertEqual(self.loaded, [])
        self.assertEqual(self.update(engine, whole), list(whole))

    def test_a_tied_model_may_store_a_head_that_is_not_sent(self):
        stored = {"model.embed_tokens.weight": [3, 4], "lm_head.weight": [3, 4]}
        sent = {"model.embed_tokens.weight": [3, 4]}
        self.assertEqual(self.update(self.engine(stored, tied=True), sent), list(sent))
        with self.assertRaisesRegex(ValueError, "lm_head.weight: missing"):
            self.update(self.engine(stored), sent)

    def test_a_head_that_is_tied_computes_with_the_new_weights(self):
        tied = {"model.embed_tokens.weight": [3, 4]}
        self.update(self.engine(tied, tied=True), tied)
        embedding, head = self.parts
        self.assertIsNotNone(embedding.weight)
        self.assertEqual((head.weight, head.packed), (embedding.weight,) * 2)

    def adapters(self, tensors=None, damage=False):
        """What an update says of adapters, by default one of all matrices."""
        return self.sent(tensors or ADAPTERS, damage) | {"kind": "adapters",
                                                         "scale": 2.0}

    def adapted_engine(self):
        """An engine whose sums name what is added."""
        self.plugin.torch_sum = lambda weight, a, b, scale: (weight, a, b, scale)
        return self.engine(ADAPTED)

    def test_adapters_are_added_to_weights_that_were_sent_before(self):
        engine = self.adapted_engine()
        names = self.update_by(engine, self.sent(ADAPTED), self.adapters())
        self.assertEqual(names, list(ADAPTED))
        base = dict(self.loaded)
        weight, a, b, scale = base["model.layers.0.mlp.up_proj.weight"]
        self.assertEqual([t.bytes[0] for t in (weight, a, b)], [1, 0, 1])
        self.assertEqual(scale, 2.0)
        # later ones come alone, and vLLM gets a whole model again
        later = {name: ADAPTERS[name] for name in reversed(ADAPTERS)}
        self.assertEqual(self.update_by(engine, self.adapters(later)), list(ADAPTED))
        loaded = dict(self.loaded)
        self.assertIs(loaded["model.norm.weight"], base["model.norm.weight"])
        again, a, b, _ = loaded["model.layers.0.mlp.up_proj.weight"]
        self.assertIs(again, weight)
        self.assertEqual([t.bytes[0] for t in (a, b)], [1, 0])

    def test_a_mistake_in_adapters_is_named_and_loads_nothing(self):
        engine = self.adapted_engine()
        with self.assertRaisesRegex(ValueError, "without the weights"):
            self.update_by(engine, self.adapters())
        self.update_by(engine, self.sent(ADAPTED), self.adapters())
        a, b = ADAPTERS
        other = {name.replace("up_proj", "down_proj"): shape
                 for name, shape in ADAPTERS.items()}
        for sent, damage, words in (
                ({a: ADAPTERS[a]}, False, "up_proj.lora_B.weight: missing"),
                ({b: ADAPTERS[b]}, False, "up_proj.lora_A.weight: missing"),
                (ADAPTERS | {a: [2, 5]}, False, "lora_A.weight: its shape"),
                (ADAPTERS | {b: [4, 3]}, False, "lora_B.weight: its shape"),
                (ADAPTERS | {"model.norm.weight": [4]}, False, "norm.*not the name"),
                (other, False, "no such matrix"),
                (ADAPTERS, True, "lora_B.weight: its checksum")):
            with self.assertRaisesRegex(ValueError, words):
                self.update_by(engine, self.adapters(sent, damage))
            self.assertEqual(self.loaded, [], words)
        self.assertEqual(self.update_by(engine, self.adapters()), list(ADAPTED))

    def test_a_matrix_that_loses_its_adapter_is_named(self):
        second = {name.replace("up_proj", "gate_proj"): shape
                  for name, shape in ADAPTERS.items()}
        self.plugin.torch_sum = lambda weight, a, b, scale: weight
        model = ADAPTED | {"model.layers.0.mlp.gate_proj.weight": [6, 4]}
        engine = self.engine(model)
        whole = self.sent(model)
        self.update_by(engine, whole, self.adapters(ADAPTERS | second))
        with self.assertRaisesRegex(ValueError, "gate_proj.*its adapter is missing"):
            self.update_by(engine, self.adapters(ADAPTERS))
        # with new weights below there may be fewer
        self.update_by(engine, self.sent(model), self.adapters(ADAPTERS))

    def test_weights_without_adapters_are_not_kept(self):
        engine = self.adapted_engine()
        self.update_by(engine, self.sent(ADAPTED), self.adapters())
        self.assertEqual(self.update_by(engine, self.sent(ADAPTED)), list(ADAPTED))
        with self.assertRaisesRegex(ValueError, "without the weights"):
            self.update_by(engine, self.adapters())
        with self.assertRaisesRegex(ValueError, "missing"):
            self.update_by(engine)

    def test_the_sum_is_that_of_the_product(self):
        weight = Matrix([[1, 2, 3], [4, 5, 6]])
        made = sys.modules["troupe_adapters"].torch_sum(
            weight, Matrix([[1, 0, 2]]), Matrix([[10], [100]]), 0.5)
        self.assertEqual(made.rows, [[6, 2, 13], [54, 5, 106]])

    def test_what_our_models_ignore_is_not_needed(self):
        stored = {"model.layers.0.mlp.up_proj.weight": [2, 2],
                  "model.layers.0.self_attn.rotary_emb.inv_freq": [2],
                  "h.0.attn.bias": [1, 2], "vision_tower.a.weight": [2],
                  "model.layers.1.eh_proj.weight": [2, 2],
                  "model.layers.1.mlp.up_proj.weight": [2, 2]}
        sent = {"model.layers.0.mlp.up_proj.weight": [2, 2]}
        self.assertEqual(self.update(self.engine(stored), sent), list(sent))

    def test_names_are_those_that_the_checkpoint_uses(self):
        for sent, stored in (
                ("transformer.wte.weight", "wte.weight"),
                ("model.norm.weight", "language_model.model.norm.weight"),
                ("model.norm.weight", "model.language_model.norm.weight")):
            engine = self.engine({stored: [4]})
            self.assertEqual(self.update(engine, {sent: [4]}), [stored])

    def over_tcp(self, engine, **fault):
        """Makes the engine's next update read the file over TCP; the offer."""
        by_memory, offers = engine.update_weights, []

        def update(info):
            with Offer(pathlib.Path(info["path"]).read_bytes(), **fault) as offer:
                offers.append(offer)
                by_memory(info | {"path": "", "tcp": offer.tcp})

        engine.update_weights = update
        return offers

    def test_an_update_over_tcp_is_that_of_memory(self):
        whole = {f"model.layers.{i}.mlp.up_proj.weight": [1 + i % 3, 4096]
                 for i in range(50)}
        engine = self.engine(whole)
        offers = self.over_tcp(engine)
        self.assertEqual(self.update(engine, whole), list(whole))
        for i, (name, tensor) in enumerate(self.loaded):
            self.assertEqual(bytes(tensor.bytes), bytes([i]) * tensor.nbytes, name)
        # the rank among all of the server
        self.assertEqual(offers[0].greeting, offers[0].tcp["token"] + "00000005")

    def test_a_mistake_over_tcp_is_named_and_ends_the_reading(self):
        whole = {f"model.layers.{i}.mlp.up_proj.weight": [4, 4096] for i in range(50)}
        engine = self.engine(whole)
        self.over_tcp(engine)
        for sent, damage, words in (
                (whole | {"model.layers.7.mlp.up_proj.weight": [9, 9]}, True,
                 "layers.7.*: its shape"),
                (whole, True, "layers.49.*: its checksum")):
            with self.assertRaisesRegex(ValueError, words):
                self.update(engine, sent, damage)
            self.assertEqual(self.loaded, [])

    def test_a_reading_that_ends_too_early_loads_nothing(self):
        whole = {"model.norm.weight": [4096], "lm_head.weight": [3, 4096]}
        engine = self.engine(whole)
        self.over_tcp(engine, most=20_000)
        with self.assertRaisesRegex(ValueError, "ended after 20000 of 65536 bytes"):
            self.update(engine, whole)
        self.assertEqual(self.loaded, [])

    def test_a_file_of_another_host_is_refused_with_what_to_set(self):
        with self.assertRaisesRegex(ValueError, "rollout.weights_over: tcp"):
            self.engine({}).update_weights({"path": "/proc/0/fd/3", "tensors": []})


if __name__ == "__main__":
    unittest.main()
