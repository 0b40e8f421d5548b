"""Takes weights by NCCL as vLLM's backend `nccl` does, for its stand-in: a thread per
tensor-parallel rank joins by the id that a run posts, sums one element, and receives
each tensor by a broadcast of rank 0. NCCL is a stand-in too (tests/support/nccl), whose
file is in VLLM_STAND_IN_NCCL."""
import base64
import concurrent.futures
import ctypes
import math
import os
import time

FLOAT32, SUM, NOT_READY = 7, 0, 600


class NcclId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


class NcclRank:
    """One rank; its calls are of one thread at a time."""

    def __init__(self, library):
        self.library, self.error_text = library, library.ncclGetErrorString
        self.error_text.restype = ctypes.c_char_p
        self.communicator, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(library.cudaStreamCreateWithFlags(ctypes.byref(self.stream), 1))

    def check(self, result):
        if result != 0:
            raise RuntimeError("NCCL error: " + self.error_text(result).decode())

    def wait(self):
        while self.library.cudaStreamQuery(self.stream) == NOT_READY:
            error = ctypes.c_int()
            self.library.ncclCommGetAsyncError(self.communicator, ctypes.byref(error))
            self.check(error.value)
            time.sleep(0.0002)  # as a GPU that is asked again

    def join(self, unique_id, world_size, rank):
        self.communicator = ctypes.c_void_p()
        self.check(self.library.ncclCommInitRank(
            ctypes.byref(self.communicator), world_size, unique_id, rank))
        element = (ctypes.c_float * 1)()
        self.check(self.library.ncclAllReduce(
            element, element, ctypes.c_size_t(1), FLOAT32, SUM, self.communicator,
            self.stream))
        self.wait()

    def receive(self, count):
        data = (ctypes.c_float * count)()
        self.check(self.library.ncclBroadcast(
            data, data, ctypes.c_size_t(count), FLOAT32, 0, self.communicator,
            self.stream))
        self.wait()
        return bytes(data)


class NcclRanks:
    """All ranks of a server."""

    def __init__(self, num_ranks):
        library = ctypes.CDLL(os.environ["VLLM_STAND_IN_NCCL"])
        self.ranks = [NcclRank(library) for _ in range(num_ranks)]
        self.threads = concurrent.futures.ThreadPoolExecutor(num_ranks)

    def of_all(self, work):
        done = [self.threads.submit(work, i, rank) for i, rank in enumerate(self.ranks)]
        return [each.result() for each in done]

    def join(self, info):
        raw = base64.b64decode(info["nccl_unique_id_b64"], validate=True)
        if len(raw) != 128 or info["packed"]:
            raise ValueError(f"an id of {len(raw)} bytes")
        unique_id = NcclId.from_buffer_copy(raw)
        self.of_all(lambda i, rank: rank.join(
            unique_id, info["world_size"], info["rank_offset"] + i))

    def receive(self, info):
        """(name, shape, data) of each tensor, as it comes."""
        lists = [info[key] for key in ("names", "dtype_names", "shapes")]
        if len(set(map(len, lists))) != 1:
            raise ValueError("`dtype_names` should be of the same size as `names`")
        for name, dtype, shape in zip(*lists):
            if dtype != "float32":
                raise ValueError(f"{name}: its type is {dtype}")
            data, *others = self.of_all(
                lambda i, rank, count=math.prod(shape): rank.receive(count))
            if others != [data] * len(others):
                raise ValueError("the ranks received different bytes")
            yield name, shape, data
