#!/usr/bin/env python3
"""Writes normalizers.json: what Hugging Face's normalizers make of texts, and
the ids of a whole tokenizer that lowercases (pip install tokenizers
sentencepiece protobuf).

usage: make_normalizers.py [OUT]
"""
import io
import json
import sys
import tempfile

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from tokenizers import normalizers as N

TEXTS = ["", "a", "Hello, World", " \t Zürich\u00a0 \n", "ÄÖÜ ß ẞ İIıi ΑΣ",
         "e\u0301 é a\u0308\u0323", "ﬁ ² ① ｱ Å ℌ", "x\u200b\u200dy\ufeffz\u2581w",
         "a\u0001b\u000bc\u007fd\u0085e", "नमस्ते กำ", "中文 Ａ１", "Ǆ ǅ ǆ Ⅷ Ⓐ 𐐀 Ꭰ",
         "``quoted'' text", "ﬁﬂ ﬀi ①②½ ｱﾞ ＡＢ", "a\r\nb\rc\nd \u3000e", "e\u0301\u0323 é\u0301",
         "e\u0308 と\u3099 か\u3099 ㍿ 가\u11a8", "tab\tnew\nline\rreturn\fpage", "👩‍👩‍👧 🇩🇪"]
# SentencePiece's rules: what is replaced, by what. One begins like another, some need
# two characters, some remove.
RULES = {"ﬁ": "fi", "ﬂ": "fl", "①": "1", "②": "2", "½": "1⁄2", "Ａ": "A", "Ｂ": "B", "１": "1",
         "e\u0301": "\u00e9", "a\u0308": "\u00e4", "e\u0308\u0323": "\u1eb9\u0308", "ｱ": "ア",
         "ｱ\uff9e": "ア\u3099", "㍿": "株式会社", "\u3000": " ", "\u00a0": " ", "\t": " ", "\n": " ",
         "\r": " ", "\u200b": " ", "\ufeff": "", "\u007f": "", "\u0001": "",
         "\u304b\u3099": "\u304c", "と\u3099": "\u3069"}


def charsmap():
    """The table that SentencePiece makes of the rules."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        for old, new in RULES.items():
            file.write("\t".join(" ".join(f"{ord(c):X}" for c in text) for text in (old, new)))
            file.write("\n")
        file.flush()
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["the boats came home"] * 20), model_writer=model,
            vocab_size=30, hard_vocab_limit=False, normalization_rule_tsv=file.name,
            minloglevel=3)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


CASES = {
    "Lowercase": N.Lowercase(), "StripAccents": N.StripAccents(),
    "NFC": N.NFC(), "NFD": N.NFD(), "NFKC": N.NFKC(), "NFKD": N.NFKD(),
    "Nmt": N.Nmt(), "ByteLevel": N.ByteLevel(),
    "Strip": N.Strip(), "StripLeft": N.Strip(left=True, right=False),
    "Replace": N.Replace("`", '"'), "ReplaceRegex":
        N.Replace(tokenizers.Regex(r"\s+"), " "),
    "Prepend": N.Prepend("▁"), "Precompiled": N.Precompiled(charsmap()),
    "AlbertLike": N.Sequence([N.Replace("``", '"'), N.NFKD(), N.StripAccents(),
                              N.Lowercase(), N.Strip()]),
}


def of_normalizer(normalizer):
    holder = Tokenizer(models.BPE())
    holder.normalizer = normalizer
    return {"normalizer": json.loads(holder.to_str())["normalizer"],
            "texts": [normalizer.normalize_str(text) for text in TEXTS]}


def lowercasing():
    """Byte-level BPE whose added tokens are looked for before and after."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {c: i for i, c in enumerate(alphabet)}
    vocab |= {"he": len(vocab), "ll": len(vocab) + 1}
    tokenizer = Tokenizer(models.BPE(vocab, [("h", "e"), ("l", "l")]))
    tokenizer.normalizer = N.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(["<END>"])
    tokenizer.add_tokens([AddedToken("Stop", normalized=True)])
    texts = ["HELLO hello", "HE<END>he<end>", "STOP stop Stop", "ÄÖ"]
    return {"tokenizer": json.loads(tokenizer.to_str()),
            "texts": [[text, tokenizer.encode(text).ids] for text in texts]}


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else "normalizers.json"
    with open(out, "w") as file:
        json.dump({"made_with": {"tokenizers": tokenizers.__version__},
                   "texts": TEXTS,
                   "cases": {k: of_normalizer(n) for k, n in CASES.items()},
                   "lowercasing": lowercasing()}, file)
        file.write("\n")


if __name__ == "__main__":
    main()
