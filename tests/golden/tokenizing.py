"""tokenizers/: small tokenizers of every kind that Troupe reads, trained here, and
what Hugging Face's tokenizers make of difficult texts with them."""
import collections
import json
import random

from common import describe, fresh, write_json, write_lines
from texts import CHATS, corpus, samples
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)
from transformers import PreTrainedTokenizerFast

# How Llama 3 and Qwen2 cut a text: what a reader of their files must understand.
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

CHATML = """{% for message in messages %}{% if loop.first and message['role'] != 'system' %}\
{{ '<|im_start|>system\\nBe of help.<|im_end|>\\n' }}{% endif %}\
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
HEADERS = """{{- bos_token }}
{%- for message in messages %}
    {%- set head = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' %}
    {{- head + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}
"""
INSTRUCTIONS = """{%- set ns = namespace(system=none) -%}
{%- if messages[0].role == 'system' -%}
    {%- set ns.system = messages[0].content -%}
    {%- set messages = messages[1:] -%}
{%- endif -%}
{%- for message in messages -%}
    {%- if (message.role == 'user') != (loop.index0 is even) -%}
        {{ raise_exception('roles must alternate') }}
    {%- endif -%}
    {%- if message.role == 'user' -%}
        {%- if loop.first and ns.system is not none -%}
            {%- set said = '<<SYS>>\\n' ~ ns.system ~ '\\n<</SYS>>\\n\\n' ~ message.content -%}
        {%- else -%}
            {%- set said = message.content -%}
        {%- endif -%}
        {{ bos_token + '[INST] ' + said.strip() + ' [/INST]' }}
    {%- else -%}
        {{ ' ' + message.content.strip() + ' ' + eos_token }}
    {%- endif -%}
{%- endfor -%}"""
TURNS = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}\
{{ raise_exception('roles must alternate: no system here') }}{% endif %}\
{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\
{{ raise_exception('roles must alternate') }}{% endif %}\
{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}\
{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"""
PLAIN = """{% for m in messages %}{{ m.role | upper }}: {{ m.content }}
{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"""

SENTENCEPIECE = ["<unk>", "<s>", "</s>"]
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def special(tokens):
    return [AddedToken(token, special=True, normalized=False) for token in tokens]


def trained_bpe(tokenizer, vocab, alphabet, first=()):
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=vocab, initial_alphabet=sorted(alphabet), limit_alphabet=len(alphabet),
        special_tokens=list(first), show_progress=False))
    return tokenizer


def common_characters(count):
    """The most frequent ones of the corpus; the trainer's own choice among equally
    frequent ones is another on each run."""
    found = collections.Counter("".join(corpus()).replace(" ", "▁"))
    return sorted(found, key=lambda c: (-found[c], c))[:count]


def byte_level(vocab, split=None, first=(), normalizer=None, ignore_merges=False,
               prefix_space=False):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer is not None:
        t.normalizer = normalizer
    if split is None:
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    else:
        t.pre_tokenizer = pre_tokenizers.Sequence(
            [*split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return trained_bpe(t, vocab, pre_tokenizers.ByteLevel.alphabet(), first)


def gpt2():
    t = byte_level(400, first=["<|endoftext|>"])
    t.add_special_tokens(special(["<|im_start|>", "<|im_end|>"]))
    return t


def gpt2_prefix():
    t = byte_level(330, first=["<|endoftext|>"], prefix_space=True)
    t.add_special_tokens(special(["<|im_start|>", "<|im_end|>"]))
    t.add_tokens([AddedToken("lamp", single_word=True, normalized=False),
                  AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False)])
    return t


def llama3():
    t = byte_level(450, [pre_tokenizers.Split(Regex(LLAMA3), "isolated")], ignore_merges=True)
    bos = "<|begin_of_text|>"
    t.add_special_tokens(special([bos, "<|end_of_text|>", "<|start_header_id|>",
                                  "<|end_header_id|>", "<|eot_id|>"]))
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos} $B",
                                      special_tokens=[(bos, t.token_to_id(bos))])])
    return t


def qwen2():
    t = byte_level(420, [pre_tokenizers.Split(Regex(QWEN2), "isolated")],
                   normalizer=normalizers.NFC())
    t.add_special_tokens(special(["<|endoftext|>", "<|im_start|>", "<|im_end|>"]))
    t.add_tokens([AddedToken("<mask>", lstrip=True, special=True, normalized=False)])
    return t


def splits():
    """Several cuts one after the other, as DeepSeek's and Falcon's files have them."""
    t = byte_level(380, [pre_tokenizers.Split(Regex(r"[\r\n]"), "isolated"),
                         pre_tokenizers.Split(Regex(r"\s?\p{L}+"), "isolated"),
                         pre_tokenizers.Punctuation("contiguous"),
                         pre_tokenizers.Split("|", "removed"),
                         pre_tokenizers.Split("=", "merged_with_previous"),
                         pre_tokenizers.Split(Regex("[\u3000-\u9fff]+"), "merged_with_next"),
                         pre_tokenizers.Digits(individual_digits=True)],
                   first=["<|endoftext|>"])
    t.add_special_tokens(special(["<|im_start|>", "<|im_end|>"]))
    return t


def normalised():
    """Every normaliser that is not tied to another kind, in a row."""
    t = byte_level(360, normalizer=normalizers.Sequence([
        normalizers.Replace(Regex(r"[ \t]+"), " "), normalizers.Nmt(), normalizers.NFKD(),
        normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip(),
        normalizers.NFKC()]), first=["<|endoftext|>"])
    t.add_special_tokens(special(["<|im_start|>", "<|im_end|>"]))
    t.add_tokens([AddedToken("LAMP", normalized=True)])
    return t


def sentencepiece_like(vocab, first, unknown="<unk>"):
    """BPE over pieces with metaspaces, bytes for what is not in the vocabulary."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    trained_bpe(inner, vocab, common_characters(110))
    model = json.loads(inner.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    order = [*first, *[f"<0x{byte:02X}>" for byte in range(256)], *pieces]
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in model["merges"]]
    t = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(order)}, merges=merges,
                             unk_token=unknown, fuse_unk=True, byte_fallback=True))
    t.add_special_tokens(special(first))
    return t


def with_bos(t, bos):
    t.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos} $B",
        special_tokens=[(bos, t.token_to_id(bos))])
    return t


def llama2():
    t = sentencepiece_like(300, SENTENCEPIECE)
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                   decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return with_bos(t, "<s>")


def metaspace():
    t = sentencepiece_like(300, SENTENCEPIECE)
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                   decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return with_bos(t, "<s>")


def metaspace_always():
    t = sentencepiece_like(280, SENTENCEPIECE)
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    t.decoder = decoders.Metaspace(prepend_scheme="always")
    return with_bos(t, "<s>")


def gemma():
    t = sentencepiece_like(300, ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>",
                                 "<end_of_turn>"])
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                   decoders.Fuse()])
    return with_bos(t, "<bos>")


def word_level(pre_tokenizer, vocab, single="$A", decoder=None):
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        t.decoder = decoder
    t.train_from_iterator(corpus(), trainers.WordLevelTrainer(
        vocab_size=vocab, special_tokens=["<unk>", "<s>", "</s>", "<pad>"], show_progress=False))
    t.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=[("<s>", 1), ("</s>", 2)] if "<" in single else [])
    return t


def unigram(unknown_bytes):
    """Pieces of a BPE with scores that fall with their rank, longer ones before shorter."""
    pieces = [piece for piece in json.loads(sentencepiece_like(300, []).to_str())["model"]["vocab"]
              if unknown_bytes or not piece.startswith("<0x")]
    vocab = [(piece, 0.0) for piece in SENTENCEPIECE] + [
        (piece, -round(3 + 0.01 * i + 2 / len(piece), 3)) for i, piece in enumerate(pieces)]
    t = Tokenizer(models.Unigram(vocab, unk_id=0, byte_fallback=unknown_bytes))
    t.add_special_tokens(special(SENTENCEPIECE))
    return t


def t5():
    t = unigram(unknown_bytes=False)
    t.normalizer = normalizers.Sequence([normalizers.NFKC(),
                                         normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    t.decoder = decoders.Metaspace(prepend_scheme="always")
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    return t


def unigram_bytes():
    t = unigram(unknown_bytes=True)
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                   decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return with_bos(t, "<s>")


BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BERT_NAMES = {"unk_token": "[UNK]", "eos_token": "[SEP]", "bos_token": "[CLS]",
              "pad_token": "[PAD]"}


def word_piece(cased):
    """BERT's, without case; or with case, accents, Chinese words and a short longest word."""
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=12 if cased else 100))
    t.normalizer = normalizers.BertNormalizer(
        lowercase=not cased, strip_accents=False if cased else None,
        handle_chinese_chars=not cased)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    alphabet = [c for c in common_characters(110) if c != "▁"]
    if not cased:
        alphabet = list(dict.fromkeys(c.lower() for c in alphabet))
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=420, initial_alphabet=sorted(alphabet), limit_alphabet=len(alphabet),
        special_tokens=BERT, show_progress=False))
    t.decoder = decoders.WordPiece(cleanup=not cased)
    ends = [("[SEP]", 3), ("[CLS]", 2)]
    t.post_processor = (processors.RobertaProcessing(*ends) if cased
                        else processors.BertProcessing(*ends))
    return t


END = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
TOKENIZERS = {
    "bpe_gpt2": (gpt2, CHATML, END, "byte-level BPE with GPT-2's cuts"),
    "bpe_gpt2_prefix": (gpt2_prefix, CHATML, END,
                        "byte-level BPE that puts a space before; added tokens with flags"),
    "bpe_llama3": (llama3, HEADERS, {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
                   "byte-level BPE with Llama 3's pattern, ignore_merges, a first token"),
    "bpe_qwen2": (qwen2, CHATML, {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
                  "byte-level BPE with Qwen2's pattern and NFC"),
    "bpe_splits": (splits, CHATML, END, "several splits, punctuation and digits, then bytes"),
    "bpe_normalised": (normalised, CHATML, END, "a row of normalisers before byte-level BPE"),
    "sp_llama2": (llama2, INSTRUCTIONS, SPECIAL, "pieces with byte fallback as Llama 2 has them"),
    "sp_metaspace": (metaspace, PLAIN, SPECIAL, "a Metaspace pre-tokenizer, first piece only"),
    "sp_metaspace_always": (metaspace_always, PLAIN, SPECIAL,
                            "Metaspace before every part, and its decoder"),
    "sp_gemma": (gemma, TURNS, {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>",
                                "unk_token": "<unk>"}, "pieces without a prefix as Gemma has them"),
    "unigram_t5": (t5, PLAIN, SPECIAL, "Unigram with NFKC, an end token, Metaspace"),
    "unigram_bytes": (unigram_bytes, PLAIN, SPECIAL, "Unigram with bytes for what is unknown"),
    "wordpiece": (lambda: word_piece(cased=False), PLAIN, BERT_NAMES, "WordPiece as BERT has it"),
    "wordpiece_cased": (lambda: word_piece(cased=True), PLAIN, BERT_NAMES,
                        "WordPiece that keeps case and accents, of words up to 12 characters"),
    "words": (lambda: word_level(pre_tokenizers.Whitespace(), 300, "<s> $A </s>"), PLAIN,
              SPECIAL | {"pad_token": "<pad>"}, "words and punctuation, others are unknown"),
    "words_split": (lambda: word_level(pre_tokenizers.WhitespaceSplit(), 300), PLAIN,
                    SPECIAL | {"pad_token": "<pad>"}, "what stands between white space"),
    "chars": (lambda: word_level(pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated"), 260,
                                 decoder=decoders.Fuse()), PLAIN,
              SPECIAL | {"pad_token": "<pad>"}, "single code points"),
}


def encoded(t, name):
    rows = []
    for text in samples(name):
        ids = t.encode(text).ids
        row = {"text": text, "ids": ids,
               "ids_plain": t.encode(text, add_special_tokens=False).ids,
               "decoded": t.decode(ids, skip_special_tokens=False),
               "decoded_skip_special": t.decode(ids, skip_special_tokens=True)}
        # parts of what is there are [first, end): plain of ids, skip of decoded's bytes, and
        # decoded is missing where it is the text
        whole, skip = (row[key].encode() for key in ("decoded", "decoded_skip_special"))
        if (at := whole.find(skip)) >= 0:
            del row["decoded_skip_special"]
            row["skip"] = [at, at + len(skip)]
        if row["decoded"] == text:
            del row["decoded"]
        plain = row.pop("ids_plain")
        first = next(i for i in range(len(ids) + 1) if ids[i:i + len(plain)] == plain)
        row["plain"] = [first, first + len(plain)]
        rows.append(row)
    return rows


def decoded(t, name):
    """Ids that stop inside a character, and ids by chance."""
    chance, size, rows = random.Random(name), t.get_vocab_size(), []
    whole = t.encode("灯台 ⛵ قارب e\u0301 घाट", add_special_tokens=False).ids
    for i in range(60):
        ids = (whole[:i + 1] if i < 8 else whole[i - 8:] if i < 16
               else [chance.randrange(size) for _ in range(chance.randint(1, 10))])
        if ids:
            rows.append({"ids": ids, "text": t.decode(ids, skip_special_tokens=False),
                         "text_skip_special": t.decode(ids, skip_special_tokens=True)})
    return rows


def chats(folder, t):
    fast, rows = PreTrainedTokenizerFast.from_pretrained(folder), []
    for messages in CHATS:
        for ask in (False, True):
            row = {"messages": messages, "add_generation_prompt": ask}
            try:
                row["text"] = fast.apply_chat_template(messages, tokenize=False,
                                                       add_generation_prompt=ask)
                row["ids"] = t.encode(row["text"], add_special_tokens=False).ids
            except Exception as error:  # noqa: BLE001
                if "alternate" not in str(error):
                    raise
                row["error"] = str(error)
            rows.append(row)
    return rows


def make_one(out, name):
    build, template, config, summary = TOKENIZERS[name]
    folder = fresh(out, name)
    text = json.loads(build().to_str())
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(text, ensure_ascii=False, separators=(",", ":")) + "\n",
                    encoding="utf-8")
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 4096,
        "clean_up_tokenization_spaces": False, **config, "chat_template": template})
    t = Tokenizer.from_file(str(file))
    rows = encoded(t, name)
    write_lines(folder / "encode.jsonl", rows)
    write_lines(folder / "decode.jsonl", decoded(t, name))
    write_lines(folder / "chat.jsonl", chats(str(folder), t))
    whole = sum(t.decode(r["ids"][slice(*r["plain"])], skip_special_tokens=False) == r["text"]
                for r in rows)
    describe(folder, summary, vocab_size=t.get_vocab_size(), rows=len(rows),
             rows_that_decode_to_their_text=whole)
    print(f"  {name}: {t.get_vocab_size()} tokens, {whole} of {len(rows)} texts come back whole")


def make(out):
    for name in TOKENIZERS:
        make_one(out / "tokenizers", name)
