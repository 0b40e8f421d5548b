"""vLLM's weight transfer backend "troupe_shm": a whole model in one memory file.

Troupe writes this file, with the metadata that vLLM finds plugins by, into a
folder of the run and puts that into PYTHONPATH of the servers it starts. An
update names, for each tensor, its place in the memory file, which is read here or
over TCP (troupe_transfer.py), and its sum; the model is touched only after every
tensor has been found, has the shape of the checkpoint and the sum that Troupe took
of it. So a mistake names the tensor and leaves the old weights serving.

A model that is trained by adapters comes once, with them; then they come alone
(troupe_adapters.py)."""
import glob
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import torch
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine, WeightTransferInitInfo, WeightTransferUpdateInfo)

from troupe_adapters import Adapters, torch_sum
from troupe_transfer import opened, tensor_sum

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


@dataclass
class Init(WeightTransferInitInfo):
    pass


@dataclass
class Update(WeightTransferUpdateInfo):
    path: str = ""                                # of the memory file
    tensors: list = field(default_factory=list)   # [name, dtype, shape, offset, sum]
    kind: str = "whole"                           # or "adapters", of a whole model
    scale: float = 0                              # of the adapters' product
    tcp: dict = field(default_factory=dict)       # where it is read instead, if not empty


def checkpoint_shapes(folder):
    """{name: shape} of the tensors that vLLM was started with."""
    shapes = {}
    for file in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        with open(file, "rb") as stored:
            length = int.from_bytes(stored.read(8), "little")
            header = json.loads(stored.read(length))
        header.pop("__metadata__", None)
        shapes |= {name: tensor["shape"] for name, tensor in header.items()}
    return shapes


def stored_name(name, stored):
    """The name that the checkpoint gives the tensor `name`: checkpoints of a bare
    model omit its first word, those of images and text have a word more."""
    bare = name
    for prefix in ("model.", "transformer.", "gpt_neox."):
        if name.startswith(prefix):
            bare = name[len(prefix):]
            break
    for known in (name, bare, "language_model." + name,
                  "model.language_model." + bare):
        if known in stored:
            return known
    return name


def needed_names(stored, tied):
    """Those of a checkpoint's tensors that an update must have: all but what
    Troupe computes nothing with (models/hf/stored_parameters.cpp)."""
    further = tuple(name[:-len("eh_proj.weight")] for name in stored
                    if name.endswith("eh_proj.weight"))  # predict more tokens
    idle = ("rotary_emb.inv_freq", "score.weight", ".attn.bias", ".attn.masked_bias",
            ".attention.bias", ".attention.masked_bias")
    if tied:
        idle += ("lm_head.weight",)
    return {name for name in stored
            if not name.endswith(idle)
            and not (further and name.startswith(further))
            and "vision_tower." not in name
            and "multi_modal_projector." not in name}


def pack_tied_heads(model):
    """Packs heads that share the embedding's weights anew. A reload passes over layers
    without weights of their own, and on CPUs a head computes with a packed copy."""
    from vllm.model_executor.layers.vocab_parallel_embedding import (
        ParallelLMHead, VocabParallelEmbedding)
    parts = [part for part in model.modules()
             if isinstance(part, VocabParallelEmbedding)]
    heads = [part for part in parts if isinstance(part, ParallelLMHead)]
    for embedding in [part for part in parts if part not in heads][:1]:
        for head in heads:
            head.weight = embedding.weight
            head.quant_method.process_weights_after_loading(head)


class ShmEngine(WeightTransferEngine[Init, Update]):
    init_info_cls, update_info_cls = Init, Update

    def init_transfer_engine(self, init_info):
        self.stored = checkpoint_shapes(self.model_config.model)
        config = self.model_config.hf_text_config
        self.tied = getattr(config, "tie_word_embeddings", False)
        self.needed = needed_names(self.stored, self.tied)
        self.adapters = Adapters(torch_sum)
        self.forget()

    def forget(self):
        self.tensors = {}

    def start_weight_update(self):
        self.forget()
        self.adapters.forget()

    def update_weights(self, update_info):
        # the base class waits for a GPU here, which raises where there is none
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info):
        into = self.tensors
        if update_info.kind == "adapters":
            into = self.adapters.expect(
                {name: shape for name, _, shape, *_ in update_info.tensors},
                update_info.scale, self.stored,
                lambda name: stored_name(name, self.stored), bool(self.tensors))
        first_offset = update_info.tensors[0][3] if update_info.tensors else 0
        tcp = update_info.tcp and update_info.tcp | {"rank": self.rank()}
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool, opened(
                update_info.path, tcp, first_offset) as file:
            # of several mistakes the first is thrown, and ends the reading
            for name, tensor in pool.map(
                    lambda sent: self.received(file, *sent), update_info.tensors):
                into[name] = tensor

    def rank(self):
        """The number of this process among those of the server."""
        config = self.parallel_config
        return config.data_parallel_index * config.world_size + config.rank

    def received(self, file, name, dtype, shape, offset, sent_sum):
        """A tensor of the memory file by its name in the checkpoint."""
        name = stored_name(name, self.stored)
        wanted = self.adapters.shapes.get(name, self.stored.get(name))
        if wanted != list(shape):
            raise ValueError(f"{name}: its shape is {shape}, the server's is {wanted}")
        tensor = torch.empty(shape, dtype=DTYPES[dtype])
        copy = memoryview(tensor.view(-1).view(torch.uint8).numpy())
        file.read_into(offset, copy)
        if tensor_sum(copy) != sent_sum:
            raise ValueError(f"{name}: its checksum differs")
        return name, tensor

    def finish_weight_update(self):
        from vllm.model_executor.model_loader.reload import (
            finalize_layerwise_reload, initialize_layerwise_reload)
        base = self.adapters.base_of(self.tensors)
        missing = sorted(self.needed - base.keys())
        if missing:
            raise ValueError(f"{missing[0]}: missing, one of {len(missing)}")
        initialize_layerwise_reload(self.model)
        self.model.load_weights(self.adapters.added(base))
        finalize_layerwise_reload(self.model, self.model_config)
        if self.tied:
            pack_tied_heads(self.model)
        self.adapters.keep(base)
        self.forget()

    def shutdown(self):
        self.forget()


def register():
    from vllm.distributed.weight_transfer.factory import (
        WeightTransferEngineFactory as Factory)
    if "troupe_shm" not in Factory._registry:  # plugins load in every process
        Factory.register_engine("troupe_shm", "troupe_vllm", "ShmEngine")
