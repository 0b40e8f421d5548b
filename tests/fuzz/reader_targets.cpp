// Readers of data and model folders beyond the plain ones: every component of a
// tokenizer.json, shard indexes, tensors touched and converted, JSONL rows of
// all kinds.
#include "config/base/error.hpp"
#include "models/data/sample_reader.hpp"
#include "models/hf/safetensors.hpp"
#include "models/io/jsonl.hpp"
#include "models/text/chat_template.hpp"
#include "models/text/tokenizer.hpp"

#include "tests/fuzz/targets.hpp"
#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>

namespace troupe::fuzz {

namespace {

using models::DataKind;

const std::vector<std::string>& many_part_tokenizers() {
  static const std::vector<std::string> texts{
    R"({"added_tokens": [{"id": 5, "content": "<e>", "special": true,
      "normalized": false, "lstrip": true, "rstrip": true,
      "single_word": true}], "normalizer": {"type": "Sequence", "normalizers":
      [{"type": "NFC"}, {"type": "Prepend", "prepend": "_"}, {"type":
      "Replace", "pattern": {"String": " "}, "content": "_"}, {"type":
      "Strip", "strip_left": true, "strip_right": true}]}, "pre_tokenizer":
      {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern":
      {"Regex": "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|\\s+"},
      "behavior": "Isolated", "invert": false}, {"type": "ByteLevel",
      "add_prefix_space": true, "use_regex": true}]}, "post_processor":
      {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<e>",
      "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "special_tokens": {"<e>": {"id": "<e>", "ids": [5]}}}, "decoder":
      {"type": "ByteLevel"}, "model": {"type": "BPE", "unk_token": "a",
      "fuse_unk": true, "ignore_merges": true, "vocab": {"a": 0, "b": 1,
      "ab": 2, "Ġ": 3, "abab": 4}, "merges": ["a b", ["ab", "ab"]]}})",
    R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap":
      "CAAAAGGFAQAABAAAZmkA"}, "model": {"type": "WordLevel", "vocab": {"<unk>":
      0, "a": 1}, "unk_token": "<unk>"}})",
    R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
      "prepend_scheme": "first", "split": true}, "decoder": {"type":
      "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"},
      "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type":
      "Strip", "content": " ", "start": 1, "stop": 0}]}, "model": {"type":
      "BPE", "byte_fallback": true, "unk_token": "<unk>", "vocab": {"<unk>": 0,
      "<0xE2>": 1, "▁": 2, "a": 3, "▁a": 4}, "merges": ["▁ a"]}})",
    R"({"pre_tokenizer": {"type": "Whitespace"}, "decoder": null, "model":
      {"type": "WordLevel", "vocab": {"<unk>": 0, "a": 1, "b": 2},
      "unk_token": "<unk>"}})",
    R"({"normalizer": {"type": "BertNormalizer", "clean_text": true,
      "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
      "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": {"type":
      "BertProcessing", "sep": ["[S]", 3], "cls": ["[C]", 2]}, "decoder":
      {"type": "WordPiece", "prefix": "##", "cleanup": true}, "model": {"type":
      "WordPiece", "unk_token": "[U]", "continuing_subword_prefix": "##",
      "max_input_chars_per_word": 9, "vocab": {"[U]": 0, "a": 1, "[C]": 2,
      "[S]": 3, "##b": 4, "ab": 5, "é": 6}}})",
    R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
      "prepend_scheme": "always", "split": true}, "decoder": {"type":
      "Metaspace", "replacement": "▁", "prepend_scheme": "always"}, "model":
      {"type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab":
      [["<unk>", 0], ["▁", -2], ["a", -3.5], ["▁ab", -4], ["b", -3],
      ["<0xC3>", -9], ["<0xA9>", -9]]}})",
  };
  return texts;
}

void read_many_part_tokenizer(const std::string& input) {
  const auto tokenizer = models::Tokenizer::parse(input, "", "tokenizer.json");
  for (const char* text :
       {"", "ab abab<e> b", "a\xC3\xA9 \xE2\x96\x81 \xF0\x9F\x98\x80 \xFF",
        "it's 12345\r\n  a"}) {
    const auto ids = tokenizer.encode(text);
    tokenizer.decode(ids, false);
    models::TextStream stream(tokenizer);
    for (const std::int32_t id : ids)
      stream.push(id);
    stream.finish();
  }
}

std::string three_tensors() {
  const std::string header
    = R"({"a":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]},)"
      R"("b":{"dtype":"BF16","shape":[],"data_offsets":[4,6]},)"
      R"("c":{"dtype":"F64","shape":[2],"data_offsets":[6,22]}})";
  const std::uint64_t size = header.size();
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes + header + std::string(22, '\x3F');
}

/// Touches every byte in memory of the exact size, so that a sanitizer sees
/// any overrun.
void read_tensors(const std::string& input) {
  const std::unique_ptr<std::byte[]> memory(new std::byte[input.size()]);
  std::memcpy(memory.get(), input.data(), input.size());
  const auto file = models::SafetensorsFile::view({memory.get(), input.size()},
                                                  "model.safetensors");
  for (const auto& tensor : file.tensors()) {
    const DType type = tensor.type();
    const bool real
      = size_bytes(type) > 1 && type != DType::i32 && type != DType::i64;
    const DType as = real ? DType::f32 : type;
    std::vector<std::byte> out(tensor.data.size() / size_bytes(type)
                               * size_bytes(as));
    tensor.copy_to(as, out);
  }
}

void read_shard_index(const std::string& folder, const std::string& input) {
  namespace fs = std::filesystem;
  const fs::path model = fs::path(folder) / "sharded";
  if (fs::create_directories(model))
    std::ofstream(model / "one.safetensors", std::ios::binary)
      << three_tensors();
  std::ofstream(model / "model.safetensors.index.json",
                std::ios::binary | std::ios::trunc)
    << input;
  const auto weights = models::StoredWeights::open(model);
  for (const std::string& name : weights.names())
    weights.at(name).type();
}

/// Reads each row separately: the next one may be valid.
void read_each_row(const models::JsonLines& lines,
                   const models::internal::SampleReader& reader) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Place place{lines.file(), lines.line_number(i)};
    try {
      reader.tokens(lines.text(i), place);
      reader.text(lines.text(i), place);
    } catch (const ConfigError&) {
      continue;
    }
  }
}

void read_json_lines(const std::string& input) {
  static const auto tokenizer = models::Tokenizer::parse(
    many_part_tokenizers().back(), R"({"eos_token": "b"})", "tokenizer.json");
  const auto lines = models::JsonLines::view(input, "rows.jsonl");
  for (const DataKind kind : {DataKind::prompts, DataKind::sft,
                              DataKind::preference, DataKind::score}) {
    models::DatasetOptions options;
    options.kind = kind;
    options.max_tokens = 3;
    options.overlong = "truncate";
    if (kind == DataKind::score)
      options.fields = {{"text", "{prompt} {reward_model.ground_truth}"}};
    read_each_row(lines, models::internal::SampleReader(options, tokenizer));
  }
}

const std::vector<std::string>& chat_templates() {
  static const std::vector<std::string> texts{
    "{% for m in messages %}{{ '<' + m['role'] + '>\\n' + m.content | trim }}"
    "{% if loop.last and add_generation_prompt %}a{% elif loop.first %}b"
    "{% else %}c{% endif %}{% endfor %}",
    "{%- set ns = namespace(n=0, l=messages[::-1]) -%}\n"
    "{%- macro f(x, y=2) -%}{{ x ~ y }}{%- endmacro -%}\n"
    "{% for k, v in messages[0].items() if v is string %}"
    "{%- set ns.n = ns.n + v | length %}{{ f(k) }}{% break %}{% else %}-"
    "{% endfor %}{# c #}{% generation %}{{ ns.n // 2 ** 3 % 5 }}"
    "{% endgeneration %}",
    "{{ messages | map(attribute='role') | join(', ') }}{{ messages | "
    "selectattr('role', 'equalto', 'user') | list | tojson(indent=1) }}"
    "{{ 'a b'.split(' ', 1)[-1].replace('b', '\\u00e9')[0:5:2] }}"
    "{{ range(1, 5) | sort(reverse=true) | sum / 3 if 1 < 2 != none else [] }}"
    "{{ {'a': (1, 2.5e3)} | dictsort }}{{ 'x' * 3 | default('y', true) }}",
    "{% set ns = namespace(a=[]) %}{% for i in range(9) %}"
    "{% set ns.a = [ns.a, {'b': ns.a}] %}{% endfor %}{{ ns.a }}",
    "{% macro f(x) %}{{ caller(x, y=1) }}{{ varargs }}{{ kwargs }}{% endmacro "
    "%}"
    "{% for m in messages %}{% call(a, y=2) f(m.role, 3, z=4) %}{{ a * y }}"
    "{% endcall %}{% with a, b = (1, m), c = a %}{% filter upper | trim %}{{ b "
    "}}"
    "{% break %}{% endfilter %}{% endwith %}{% set s | length %}{{ c }}"
    "{% endset %}{% endfor %}",
  };
  return texts;
}

void render_template(const std::string& input) {
  static const auto messages = nlohmann::ordered_json::parse(
    R"([{"role": "user", "content": "h\u00e9 <b>"},
        {"role": "assistant", "content": "ok"}])");
  const models::ChatTemplate chat(input, {{"bos_token", "<s>"}}, "template");
  chat.render(messages, true);
  try {
    chat.render_turns(messages);
  } catch (const ConfigError&) {
    return; // turns that cannot be told apart
  }
}

} // namespace

void add_reader_targets(std::vector<Target>& targets,
                        const std::string& folder) {
  targets.push_back(
    {"tokenizer_parts", many_part_tokenizers(), read_many_part_tokenizer});
  targets.push_back({"chat_template", chat_templates(), render_template});
  targets.push_back({"tensors", {three_tensors()}, read_tensors});
  targets.push_back(
    {"shard_index",
     {R"({"metadata": {"total_size": 8}, "weight_map": )"
      R"({"a": "one.safetensors", "c": "one.safetensors"}})"},
     [folder](const std::string& input) { read_shard_index(folder, input); }});
  targets.push_back(
    {"json_lines",
     {"{\"prompt\": \"a b\", \"completion\": \"b\", \"ground_truth\": 3}\n"
      "{\"prompt\": \"b\", \"chosen\": \"a\", \"rejected\": \"\"}\n",
      "{\"text\": \"a\\u00e9\\ud83d\\ude00\"}\r\n\n{\"ids\": [1, 2, 0]}",
      "{\"prompt_ids\": [1, 0], \"reward_model\": {\"ground_truth\": \"x\"}}\n"
      "{\"prompt\": [{\"role\": \"user\", \"content\": \"a\"}]}\n"},
     read_json_lines});
}

} // namespace troupe::fuzz
