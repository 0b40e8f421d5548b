#!/usr/bin/env python3
"""Writes normalizers.json: what Hugging Face's normalizers make of texts, and
the ids of a whole tokenizer that lowercases (pip install tokenizers).

usage: make_normalizers.py [OUT]
"""
import json
import sys

import tokenizers
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from tokenizers import normalizers as N

TEXTS = ["", "a", "Hello, World", " \t Zürich\u00a0 \n", "ÄÖÜ ß ẞ İIıi ΑΣ",
         "e\u0301 é a\u0308\u0323", "ﬁ ² ① ｱ Å ℌ", "x\u200b\u200dy\ufeffz\u2581w",
         "a\u0001b\u000bc\u007fd\u0085e", "नमस्ते กำ", "中文 Ａ１", "Ǆ ǅ ǆ Ⅷ Ⓐ 𐐀 Ꭰ",
         "``quoted'' text", "tab\tnew\nline\rreturn\fpage", "👩‍👩‍👧 🇩🇪"]
CASES = {
    "Lowercase": N.Lowercase(), "StripAccents": N.StripAccents(),
    "NFC": N.NFC(), "NFD": N.NFD(), "NFKC": N.NFKC(), "NFKD": N.NFKD(),
    "Nmt": N.Nmt(), "ByteLevel": N.ByteLevel(),
    "Strip": N.Strip(), "StripLeft": N.Strip(left=True, right=False),
    "Replace": N.Replace("`", '"'), "ReplaceRegex":
        N.Replace(tokenizers.Regex(r"\s+"), " "),
    "Prepend": N.Prepend("▁"),
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
