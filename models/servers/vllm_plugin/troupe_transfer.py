"""How the weights of an update come to a server: in the memory of the device's
process, which a server on its host reads, or over TCP, and the sum of each tensor,
as models/servers/tensor_sum.hpp defines it. NumPy is enough."""
import functools
import mmap
import socket
import ssl
import threading

import numpy as np

WORDS = 32768  # of a chunk
INCREMENT, MASK = 0x9e3779b97f4a7c15, (1 << 64) - 1
CONNECT_S = 10
SILENT_S = 60    # as the run's other pulls of weights
READ_BYTES = 8 << 20


def mixed(x):
    """The finalizer of splitmix64, of a number or, modulo 2^64, of an array."""
    if isinstance(x, np.ndarray):
        thirty, twenty_seven, thirty_one = map(np.uint64, (30, 27, 31))
        x = (x ^ x >> thirty) * np.uint64(0xbf58476d1ce4e5b9)
        x = (x ^ x >> twenty_seven) * np.uint64(0x94d049bb133111eb)
        return x ^ x >> thirty_one
    x &= MASK
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


@functools.cache
def all_keys():
    places = np.arange(1, WORDS + 1, dtype=np.uint64)
    return mixed(np.uint64(1) + places * np.uint64(INCREMENT)) | np.uint64(1)


def tensor_sum(data):
    """The sum of bytes, whose threads need no lock of Python's most of the time."""
    whole = len(data) // 8
    words = np.frombuffer(data, "<u8", whole)
    low = high = mixed(len(data))
    low_half, half_bits = np.uint64(0xffffffff), np.uint64(32)
    scratch = np.empty(WORDS, np.uint64)
    chunks = [words[at:at + WORDS] for at in range(0, whole, WORDS)]
    if rest := bytes(data[8 * whole:]):
        last = np.frombuffer(rest.ljust(8, b"\0"), "<u8")
        if whole % WORDS:
            chunks[-1] = np.concatenate([chunks[-1], last])
        else:
            chunks.append(last)
    for c, chunk in enumerate(chunks):
        keys, product = all_keys()[:len(chunk)], scratch[:len(chunk)]
        np.bitwise_and(chunk, low_half, out=product)
        np.multiply(product, keys, out=product)
        low += mixed(int(np.add.reduce(product)) + (2 * c + 1) * INCREMENT)
        np.right_shift(chunk, half_bits, out=product)
        np.multiply(product, keys, out=product)
        high += mixed(int(np.add.reduce(product)) + (2 * c + 2) * INCREMENT)
    return f"{low & MASK:016x}{high & MASK:016x}"


class Memory:
    """The memory file of a process on this host."""

    def __init__(self, path):
        try:
            with open(path, "rb") as file:
                self.view = memoryview(
                    mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as error:
            raise ValueError(
                f"cannot read the weights of the run here: {error}; a server on "
                "another host needs rollout.weights_over: tcp") from error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Nothing: other threads may still read."""

    def read_into(self, offset, place):
        with self.view[offset:offset + len(place)] as sent:
            place[:] = sent


class Stream:
    """The same file from a socket, from its first byte to its last."""

    def __init__(self, host, port, token, certificate, bytes, rank):
        self.size, self.at, self.ended = bytes, 0, False
        self.turn = threading.Condition()
        self.name = f"{host}:{port}"
        try:
            self.socket = socket.create_connection((host, port), CONNECT_S)
            self.socket.settimeout(SILENT_S)
            if certificate:
                trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                trust.check_hostname = False  # of this update alone
                trust.load_verify_locations(cadata=certificate)
                self.socket = trust.wrap_socket(self.socket)
            self.socket.sendall(f"{token}{rank:08x}".encode())
        except OSError as error:
            raise ValueError(f"cannot read weights at {self.name}: {error}") from error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.turn:
            self.ended = True
            self.turn.notify_all()
        try:
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes who reads
        except OSError:
            pass  # the other side was first
        self.socket.close()

    def read_into(self, offset, place):
        """Fills `place`; calls may come from several threads, whose tensors begin
        where others end, and wait for their turns."""
        if offset + len(place) > self.size:
            raise ValueError(f"a tensor ends after the {self.size} bytes of the update")
        with self.turn:
            self.turn.wait_for(lambda: self.ended or self.at == offset)
        self.receive(place)
        with self.turn:
            self.at = offset + len(place)
            self.turn.notify_all()

    def skip_to(self, offset):
        """Passes over what comes before the first tensor."""
        if not 0 <= offset <= min(self.size, READ_BYTES):
            raise ValueError(f"the first tensor begins at byte {offset}")
        self.receive(memoryview(bytearray(offset)))
        self.at = offset

    def receive(self, place):
        got = 0
        while got < len(place):
            try:
                came = self.socket.recv_into(place[got:got + READ_BYTES])
            except OSError as error:
                raise ValueError(f"reading weights at {self.name} failed after "
                                 f"{self.at + got} of {self.size} bytes: "
                                 f"{error}") from error
            if came == 0:
                raise ValueError(f"the weights at {self.name} ended after "
                                 f"{self.at + got} of {self.size} bytes")
            got += came


def opened(path, tcp, first_offset):
    """Where the tensors of an update are read, in a `with`."""
    if not tcp:
        return Memory(path)
    stream = Stream(**tcp)
    try:
        stream.skip_to(first_offset)
    except BaseException:
        stream.__exit__()
        raise
    return stream
