"""Makes a PNG of a screen small: 256 colours in place of 16 million, which are its
most frequent ones, and each other the nearest of them. Python alone, since no tool
for it is installed everywhere."""
import collections
import struct
import zlib

HEAD = b"\x89PNG\r\n\x1a\n"
MOST_COLOURS = 256
ALIKE = 3 * 5 ** 2  # squared: colours this close share an entry
CHANNELS = {2: 3, 6: 4}  # colour type: RGB, RGBA


def chunks(data):
    at = len(HEAD)
    while at < len(data):
        size, = struct.unpack(">I", data[at:at + 4])
        yield data[at + 4:at + 8], data[at + 8:at + 8 + size]
        at += size + 12


def paeth(left, up, corner):
    guess = left + up - corner
    return min((left, up, corner), key=lambda c: abs(guess - c))


def unfiltered(kind, row, before, step):
    """A row of bytes as it was before its filter."""
    row = bytearray(row)
    for i, byte in enumerate(row if kind else b""):
        left, up = row[i - step] if i >= step else 0, before[i]
        corner = before[i - step] if i >= step else 0
        row[i] = (byte + (0, left, up, (left + up) // 2,
                          paeth(left, up, corner) if kind == 4 else 0)[kind]) & 255
    return row


def pixels(data):
    """Width, height and rows of (r, g, b) of a PNG with 8 bits a channel."""
    parts = collections.defaultdict(bytes)
    for kind, body in chunks(data):
        parts[kind] += body
    width, height, bits, colour, *_ = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    if data[:8] != HEAD or bits != 8 or colour not in CHANNELS:
        raise ValueError("expected a PNG of RGB with 8 bits")
    step, raw = CHANNELS[colour], zlib.decompress(parts[b"IDAT"])
    before, rows = bytearray(width * step), []
    for y in range(height):
        at = y * (width * step + 1)
        before = unfiltered(raw[at], raw[at + 1:at + 1 + width * step], before, step)
        rows.append(list(zip(before[0::step], before[1::step], before[2::step])))
    return width, height, rows


def apart(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b))


def palette(counts):
    chosen = []
    for colour, _ in counts.most_common():
        if all(apart(colour, other) > ALIKE for other in chosen):
            chosen.append(colour)
        if len(chosen) == MOST_COLOURS:
            break
    return chosen


def chunk(kind, body):
    return (struct.pack(">I", len(body)) + kind + body
            + struct.pack(">I", zlib.crc32(kind + body)))


def small_png(data):
    """The picture with a palette."""
    width, height, rows = pixels(data)
    counts = collections.Counter(colour for row in rows for colour in row)
    colours = palette(counts)
    index = {colour: min(range(len(colours)), key=lambda i: apart(colour, colours[i]))
             for colour in counts}
    raw = b"".join(b"\0" + bytes(map(index.__getitem__, row)) for row in rows)
    return HEAD + b"".join((
        chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        chunk(b"PLTE", bytes(c for colour in colours for c in colour)),
        chunk(b"IDAT", zlib.compress(raw, 9)), chunk(b"IEND", b"")))
