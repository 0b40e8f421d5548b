"""safetensors/: files written byte by byte, valid and broken, with the verdict that a
reader owes; the safetensors library is asked about each, and its verdict must be the
same but where the format forbids what the library lets pass."""
import json
import random
import struct

import safetensors
import torch
from common import describe, fresh, generator, normal, write_json

CLASSES = ["HeaderTooSmall", "HeaderTooLarge", "HeaderLength", "HeaderNotUtf8", "HeaderNotJson",
           "HeaderSchema", "UnknownDtype", "DuplicateName", "ShapeOverflow", "SizeMismatch",
           "OffsetsInvalid", "DataLength"]
LIBRARY_IS_LAX = {"name_twice_one_range"}


def file_of(header, data=b"", length=None):
    if not isinstance(header, bytes):
        text = header if isinstance(header, str) else json.dumps(
            header, separators=(",", ":"), ensure_ascii=False)
        header = text.encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def packed(tensors, order=None, metadata=None, align=8):
    """name -> (dtype, shape, bytes), the data in `order`, the header as given."""
    begins, data = {}, b""
    for name in order or tensors:
        begins[name] = len(data)
        data += tensors[name][2]
    header = {"__metadata__": metadata} if metadata is not None else {}
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = tensor(dtype, shape, begins[name], begins[name] + len(raw))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return file_of(text + b" " * (-len(text) % align), data)


def raw(t):
    return bytes(t.contiguous().view(torch.uint8).flatten().tolist())


def floats(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


F23 = normal((2, 3), generator("safetensors"))
ONE = {"w": tensor("F32", [2], 0, 8)}
EIGHT = floats(1, 2)


def valid():
    nan, inf = float("nan"), float("inf")
    dtypes = {"bool": ("BOOL", [3], b"\1\0\1"), "u8": ("U8", [3], b"\0\x7f\xff"),
              "i8": ("I8", [2], b"\x7f\x80"), "i16": ("I16", [1], struct.pack("<h", -30000)),
              "u16": ("U16", [1], struct.pack("<H", 65535)),
              "i32": ("I32", [2], struct.pack("<ii", -2**31, 9)),
              "u32": ("U32", [1], struct.pack("<I", 2**32 - 1)),
              "i64": ("I64", [2], struct.pack("<qq", -2**63, 2**63 - 1)),
              "u64": ("U64", [1], struct.pack("<Q", 2**64 - 1)),
              "f16": ("F16", [2, 3], raw(F23.half())), "bf16": ("BF16", [2, 3], raw(F23.bfloat16())),
              "f32": ("F32", [2, 3], raw(F23)), "f64": ("F64", [2, 3], raw(F23.double())),
              "f8_e4m3": ("F8_E4M3", [2, 3], raw(F23.to(torch.float8_e4m3fn))),
              "f8_e5m2": ("F8_E5M2", [2, 3], raw(F23.to(torch.float8_e5m2)))}
    spaced = '{ "w" :\n\t{"shape":[ 2 ],\r\n"dtype" : "F32","data_offsets":[0 , 8]} }'
    return {
        "all_dtypes": packed(dtypes),
        "scalars": packed({"none": ("F32", [], floats(2.5)), "one": ("F32", [1], floats(-2.5))}),
        "empty_tensors": packed({"a": ("F32", [0], b""), "b": ("I64", [4, 0], b""),
                                 "c": ("F32", [1], floats(3)), "d": ("F16", [0, 0, 2], b"")}),
        "no_tensors": file_of("{}"), "no_tensors_padded": file_of("{}      "),
        "only_metadata": file_of({"__metadata__": {"format": "pt"}}),
        "metadata": packed({"w": ("F32", [2, 3], raw(F23))},
                           metadata={"format": "pt", "für": "灯 ⛵", "": "", "j": "{\"a\":1}"}),
        "unaligned": packed({"three": ("U8", [3], b"\1\2\3"), "w": ("F32", [2, 3], raw(F23)),
                             "last": ("I64", [1], struct.pack("<q", -9))}, align=1),
        "other_order": packed({"z": ("F32", [1], floats(26)), "a": ("F32", [1], floats(1)),
                               "m": ("F32", [1], floats(13))}, order=["m", "z", "a"]),
        "special_numbers": packed({
            "f32": ("F32", [6], floats(nan, inf, -inf, -0.0, 1e-45, 3.4028235e38)),
            "f16": ("F16", [3], struct.pack("<eee", nan, inf, 6e-8)),
            "bf16": ("BF16", [3], b"\x80\x7f\xc0\x7f\x01\x00")}),
        "names": packed({"": ("U8", [1], b"\0"), "für.灯.⛵": ("U8", [1], b"\1"),
                         "a/b \\\"c": ("U8", [1], b"\2"), "y" * 250: ("U8", [1], b"\3"),
                         "two\nlines": ("U8", [1], b"\4")}),
        "escapes": file_of('{"\\u0062\\ud83d\\udea2":{"dtype":"U8","shape":[1],'
                           '"data_offsets":[0,1]}}', b"\7"),
        "spaces_in_header": file_of(spaced, EIGHT),
        "many_tensors": packed({f"layer.{i}.w": ("F32", [1], floats(i)) for i in range(200)}),
        "many_dimensions": packed({"w": ("F32", [1, 3, 1, 1, 2, 1, 2], floats(*range(12)))}),
    }


def written(body):
    return '{"w":' + body + "}"


def broken_lengths():
    huge = struct.pack("<Q", 2**64 - 1)
    return {
        "nothing": (b"", "HeaderTooSmall"), "seven_bytes": (b"\2" + b"\0" * 6, "HeaderTooSmall"),
        "length_alone": (struct.pack("<Q", 16), "HeaderLength"),
        "length_of_nothing": (struct.pack("<Q", 0), "HeaderNotJson", "HeaderTooSmall",
                              "HeaderSchema"),
        "header_cut": (file_of(ONE, EIGHT)[:28], "HeaderLength"),
        "length_one_more": (file_of("{}", length=3), "HeaderLength"),
        "length_all_ones": (huge + b"{}", "HeaderTooLarge", "HeaderLength"),
        "length_sign_bit": (struct.pack("<Q", 2**63) + b"{}", "HeaderTooLarge", "HeaderLength"),
        "length_above_limit": (struct.pack("<Q", 100_000_001) + b"{}", "HeaderTooLarge",
                               "HeaderLength"),
        "length_one_short": (file_of(ONE, EIGHT, length=len(json.dumps(ONE, separators=(
            ",", ":"))) - 1), "HeaderNotJson"),
    }


def broken_json():
    return {
        "not_utf8": (file_of(b'{"\xff":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"\0"),
                     "HeaderNotUtf8"),
        "utf8_cut": (file_of(b'{"\xe7\x81":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
                             b"\0"), "HeaderNotUtf8"),
        "not_json": (file_of("tensors!", EIGHT), "HeaderNotJson"),
        "unfinished": (file_of('{"w":{"dtype":"F32"', EIGHT), "HeaderNotJson"),
        "comma_at_end": (file_of(written(
            '{"dtype":"F32","shape":[2],"data_offsets":[0,8],}'), EIGHT), "HeaderNotJson"),
        "two_values": (file_of("{}{}"), "HeaderNotJson"),
        "half_a_surrogate": (file_of('{"\\ud83d":{"dtype":"U8","shape":[1],'
                                     '"data_offsets":[0,1]}}', b"\0"), "HeaderNotJson",
                             "HeaderNotUtf8"),
        "control_character": (file_of(b'{"a\x02":{"dtype":"F32","shape":[2],'
                                      b'"data_offsets":[0,8]}}', EIGHT), "HeaderNotJson"),
        "very_deep": (file_of(written("[" * 4000 + "]" * 4000)), "HeaderNotJson", "HeaderSchema"),
        "nul_at_end": (file_of(json.dumps(ONE).encode() + b"\0\0", EIGHT), "HeaderNotJson"),
        "a_list": (file_of("[]"), "HeaderSchema"), "a_number": (file_of("7"), "HeaderSchema"),
        "null": (file_of("null"), "HeaderSchema"),
    }


def broken_entries():
    def entry(text, *classes):
        return (file_of(written(text), EIGHT), *classes)

    span = '"data_offsets":[0,8]'
    return {
        "entry_is_null": (file_of('{"w":null}'), "HeaderSchema"),
        "no_dtype": entry('{"shape":[2],' + span + "}", "HeaderSchema"),
        "no_shape": entry('{"dtype":"F32",' + span + "}", "HeaderSchema"),
        "no_offsets": entry('{"dtype":"F32","shape":[2]}', "HeaderSchema"),
        "dtype_is_number": entry('{"dtype":32,"shape":[2],' + span + "}", "HeaderSchema",
                                 "UnknownDtype"),
        "shape_negative": entry('{"dtype":"F32","shape":[-2],' + span + "}", "HeaderSchema",
                                "SizeMismatch"),
        "shape_twice_negative": entry('{"dtype":"F32","shape":[-2,-1],' + span + "}",
                                      "HeaderSchema", "SizeMismatch"),
        "shape_fraction": entry('{"dtype":"F32","shape":[1.5],' + span + "}", "HeaderSchema"),
        "shape_text": entry('{"dtype":"F32","shape":["2"],' + span + "}", "HeaderSchema"),
        "shape_no_list": entry('{"dtype":"F32","shape":2,' + span + "}", "HeaderSchema"),
        "one_offset": entry('{"dtype":"F32","shape":[2],"data_offsets":[8]}', "HeaderSchema"),
        "three_offsets": entry('{"dtype":"F32","shape":[2],"data_offsets":[0,4,8]}',
                               "HeaderSchema"),
        "offset_negative": entry('{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}',
                                 "HeaderSchema", "OffsetsInvalid"),
        "offset_wraps": entry('{"dtype":"F32","shape":[2],"data_offsets":[0,'
                              '18446744073709551624]}', "HeaderSchema", "HeaderNotJson",
                              "OffsetsInvalid", "DataLength"),
        "metadata_number": (file_of({"__metadata__": {"v": 1}, **ONE}, EIGHT), "HeaderSchema"),
        "metadata_list": (file_of({"__metadata__": ["v"], **ONE}, EIGHT), "HeaderSchema"),
        "dtype_unknown": (file_of({"w": tensor("F31", [2], 0, 8)}, EIGHT), "UnknownDtype"),
        "dtype_lower_case": (file_of({"w": tensor("f32", [2], 0, 8)}, EIGHT), "UnknownDtype"),
        "dtype_empty": (file_of({"w": tensor("", [2], 0, 8)}, EIGHT), "UnknownDtype"),
        "name_twice": (file_of('{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":'
                               '{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}',
                               EIGHT + EIGHT), "DuplicateName", "OffsetsInvalid"),
        "name_twice_one_range": (file_of(
            '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"I32",'
            '"shape":[2],"data_offsets":[0,8]}}', EIGHT), "DuplicateName", "OffsetsInvalid"),
        "field_twice": entry('{"dtype":"F32","dtype":"I32","shape":[2],' + span + "}",
                             "DuplicateName"),
    }


def broken_sizes():
    def one(dtype, shape, begin, end, data, *classes):
        return (file_of({"w": tensor(dtype, shape, begin, end)}, data), *classes)

    def two(a, b, data, *classes):
        return (file_of({"a": tensor("F32", [2], *a), "b": tensor("F32", [2], *b)}, data),
                *classes)

    return {
        "shape_overflows": one("F32", [2**33, 2**33], 0, 8, EIGHT, "ShapeOverflow"),
        "shape_wraps_to_two": one("F32", [2**63 + 1, 2], 0, 8, EIGHT, "ShapeOverflow"),
        "bytes_wrap_to_nothing": one("F32", [2**62], 0, 0, b"", "ShapeOverflow"),
        "range_too_small": one("F32", [3], 0, 8, EIGHT, "SizeMismatch"),
        "range_too_large": one("F32", [1], 0, 8, EIGHT, "SizeMismatch", "DataLength"),
        "range_of_other_dtype": one("F16", [2], 0, 8, EIGHT, "SizeMismatch"),
        "scalar_of_eight_bytes": one("F32", [], 0, 8, EIGHT, "SizeMismatch"),
        "empty_of_eight_bytes": one("F32", [0, 3], 0, 8, EIGHT, "SizeMismatch"),
        "terabytes_declared": one("F32", [2**40], 0, 8, EIGHT, "SizeMismatch", "DataLength"),
        "range_reversed": one("F32", [2], 8, 0, EIGHT, "OffsetsInvalid"),
        "ranges_overlap": two((0, 8), (4, 12), floats(1, 2, 3), "OffsetsInvalid"),
        "ranges_equal": two((0, 8), (0, 8), EIGHT, "OffsetsInvalid"),
        "hole_between": two((0, 8), (12, 20), floats(1, 2, 3, 4, 5), "OffsetsInvalid"),
        "hole_at_start": one("F32", [2], 8, 16, EIGHT + EIGHT, "OffsetsInvalid", "DataLength"),
        "data_short": one("F32", [4], 0, 16, EIGHT, "DataLength"),
        "terabytes_in_range": one("U8", [2**40], 0, 2**40, EIGHT, "DataLength"),
        "data_one_byte_short": (file_of(ONE, EIGHT)[:-1], "DataLength"),
        "data_missing": (file_of(ONE), "DataLength"),
        "data_one_byte_long": (file_of(ONE, EIGHT + b"\0"), "DataLength"),
        "data_of_nothing": (file_of("{}", EIGHT), "DataLength"),
    }


def mutants():
    """Valid files with one to three damages, mostly in the header."""
    chance = random.Random("mutants")
    whole = {k: v for k, v in valid().items() if k != "many_tensors"}
    for i in range(60):
        name = chance.choice(sorted(whole))
        content, kinds = bytearray(whole[name]), []
        header = 8 + struct.unpack("<Q", content[:8])[0]
        for _ in range(chance.randint(1, 3)):
            kinds.append(chance.choice(["flip", "digit", "delete", "insert", "cut", "repeat"]))
            at = chance.randrange(max(1, min(header, len(content))))
            if kinds[-1] == "digit":
                digits = [k for k, c in enumerate(content[:header]) if k > 7 and 48 <= c <= 57]
                if digits:
                    content[chance.choice(digits)] = 48 + chance.randrange(10)
            elif kinds[-1] == "flip" and content:
                content[at] ^= 1 << chance.randrange(8)
            elif kinds[-1] == "delete":
                del content[at:at + chance.randint(1, 4)]
            elif kinds[-1] == "insert":
                content[at:at] = chance.randbytes(chance.randint(1, 4))
            elif kinds[-1] == "repeat":
                content[at:at] = content[at:at + chance.randint(1, 40)]
            else:
                del content[chance.randrange(len(content) + 1):]
        yield f"mutant_{i:02}", bytes(content), f"{name}: {', '.join(kinds)}"


def library_takes(content):
    try:
        safetensors.deserialize(content)
        return True
    except Exception:  # noqa: BLE001
        return False


def contents(content):
    size = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8:8 + size]), content[8 + size:]
    return {"metadata": header.pop("__metadata__", {}),
            "tensors": {name: {"dtype": t["dtype"], "shape": t["shape"],
                               "hex": data[slice(*t["data_offsets"])].hex()}
                        for name, t in header.items()}}


def indexes():
    a, b = (packed({name: ("F32", [1], floats(value))}) for name, value in (("a", 1), ("b", 2)))
    both = packed({"a": ("F32", [1], floats(3)), "b": ("F32", [1], floats(2))})
    one, two = (f"model-0000{i}-of-00002.safetensors" for i in (1, 2))
    good = {"metadata": {"total_size": 8}, "weight_map": {"a": one, "b": two}}
    escape = good | {"weight_map": {"a": one, "b": "../" + two}}
    absolute = good | {"weight_map": {"a": one, "b": "/" + two}}
    return {
        "good": (good, {one: a, two: b}, "accept"),
        "wrong_total": (good | {"metadata": {"total_size": 999}}, {one: a, two: b}, "accept"),
        "file_missing": (good, {one: a}, "reject"),
        "tensor_missing": (good, {one: a, two: a}, "reject"),
        "tensor_in_two_files": (good, {one: a, two: both}, "either"),
        "leaves_the_folder": (escape, {one: a}, "reject"),
        "absolute_path": (absolute, {one: a}, "reject"),
        "no_map": ({"metadata": {}}, {one: a}, "reject"),
        "map_is_a_list": ({"weight_map": ["a", "b"]}, {one: a}, "reject"),
        "cut": (None, {one: a}, "reject"),
    }


def make_indexes(out):
    for name, (index, files, expected) in indexes().items():
        folder = fresh(out, "index", name)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        path = folder / "model.safetensors.index.json"
        path.write_text('{"weight_map": {"a":') if index is None else write_json(path, index)
        describe(folder, name.replace("_", " "), expected=expected,
                 values={"a": 1.0, "b": 2.0} if expected != "reject" else {})


def make(out):
    out = out / "safetensors"
    folder, files = fresh(out, "valid"), {}
    for name, content in valid().items():
        assert library_takes(content), name
        (folder / f"{name}.safetensors").write_bytes(content)
        files[f"{name}.safetensors"] = contents(content)
    describe(folder, "valid files, each tensor's bytes in hex", files=files)

    folder, files = fresh(out, "malformed"), {}
    every = broken_lengths() | broken_json() | broken_entries() | broken_sizes()
    for name, (content, error, *also_right) in every.items():
        assert {error, *also_right} <= set(CLASSES), name
        assert library_takes(content) == (name in LIBRARY_IS_LAX), name
        (folder / f"{name}.safetensors").write_bytes(content)
        files[f"{name}.safetensors"] = {"expected": "reject", "error": error,
                                        "also_right": also_right}
    describe(folder, "malformed files, and why each is refused", files=files)

    folder, files = fresh(out, "mutants"), {}
    for name, content, how in mutants():
        (folder / f"{name}.safetensors").write_bytes(content)
        files[f"{name}.safetensors"] = {
            "expected": "either" if library_takes(content) else "reject", "how": how}
    describe(folder, "damaged files: refused where the library refuses", files=files)
    make_indexes(out)
    print(f"  {len(valid())} valid, {len(every)} malformed, {len(files)} mutants,"
          f" {len(indexes())} indexes")
