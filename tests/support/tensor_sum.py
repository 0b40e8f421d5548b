"""The sum of a tensor as models/servers/tensor_sum.hpp defines it, in plain Python
for the stand-ins, and the bytes that its tests sum."""
import functools
import operator
import struct

WORDS = 32768  # of a chunk
INCREMENT, MASK = 0x9e3779b97f4a7c15, (1 << 64) - 1


def mixed(x):
    x &= MASK
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


@functools.cache
def keys():
    return [mixed(1 + (j + 1) * INCREMENT) | 1 for j in range(WORDS)]


def tensor_sum(data):
    data = bytes(data)
    low = high = mixed(len(data))
    padded = data + bytes(-len(data) % 8)
    for c, at in enumerate(range(0, len(padded), 8 * WORDS)):
        chunk = padded[at:at + 8 * WORDS]
        halves = struct.unpack(f"<{len(chunk) // 4}I", chunk)
        low += mixed(sum(map(operator.mul, halves[::2], keys()))
                     + (2 * c + 1) * INCREMENT)
        high += mixed(sum(map(operator.mul, halves[1::2], keys()))
                      + (2 * c + 2) * INCREMENT)
    return f"{low & MASK:016x}{high & MASK:016x}"


def pattern(size):
    """Bytes that the tests in C++ make as well."""
    state, made = 1, bytearray(size)
    for i in range(size):
        state = state * 6364136223846793005 + 1442695040888963407 & MASK
        made[i] = state >> 56
    return bytes(made)
