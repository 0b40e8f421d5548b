#include "tests/fuzz/targets.hpp"

#include "config/base/strategy.hpp"
#include "config/model/model_shape.hpp"
#include "config/settings/settings.hpp"
#include "config/trace/trace.hpp"
#include "config/trace/trace_file.hpp"
#include "models/agents/api_error.hpp"
#include "models/agents/api_request.hpp"
#include "models/agents/session_end.hpp"
#include "models/agents/session_report.hpp"
#include "models/agents/tool_calls.hpp"
#include "models/hf/safetensors.hpp"
#include "models/text/tokenizer.hpp"
#include "net/base/wire.hpp"
#include "plans/foreign/allocation_mode.hpp"
#include "plans/foreign/command_flags.hpp"
#include "plans/foreign/yaml_values.hpp"
#include "plans/plan/execution_plan.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

namespace troupe::fuzz {

namespace {

std::string read_bytes(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Writes `input` to a file of that name.
std::filesystem::path as_file(const std::string& folder,
                              const std::string& name,
                              const std::string& input) {
  std::filesystem::path path = std::filesystem::path(folder) / name;
  std::ofstream(path, std::ios::binary | std::ios::trunc) << input;
  return path;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

constexpr const char* small_script
  = "A=${N:-8}\nARGS=(\n --x $((A * 2)) # no\n)\nif [ \"$B\" == \"\" ]; then\n "
    "B=1\nfi\nread -r -d '' C <<EOF\nmain.py \\\n --y 'z'\nEOF\npython3 $C "
    "\"${ARGS[@]}\" +a.b=$B &> out\n";

void read_launch_script(const std::string& input) {
  plans::flags_of(plans::read_shell(input, "run.sh"));
}

std::string small_safetensors() {
  std::string header = R"({"__metadata__":{"format":"pt"},)"
                       R"("a":{"dtype":"F32","shape":[2,2],)"
                       R"("data_offsets":[0,16]},"b":{"dtype":"BF16",)"
                       R"("shape":[3],"data_offsets":[16,22]}})";
  const std::uint64_t size = header.size();
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes + header + std::string(22, '\1');
}

constexpr const char* small_tokenizer = R"({"version":"1.0","added_tokens":[
{"id":6,"content":"<|end|>","single_word":false,"lstrip":false,"rstrip":false,
"normalized":false,"special":true}],"normalizer":null,"pre_tokenizer":{"type":
"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
"post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":false,
"trim_offsets":true,"use_regex":true},"model":{"type":"BPE","dropout":null,
"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,
"fuse_unk":false,"byte_fallback":false,"vocab":{"a":0,"b":1,"c":2,"ab":3,
"abc":4,"Ġ":5,"<|end|>":6},"merges":[["a","b"],["ab","c"]]}})";

constexpr const char* small_model = R"({"architectures":["LlamaForCausalLM"],
"model_type":"llama","vocab_size":32,"hidden_size":16,"intermediate_size":32,
"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,
"hidden_act":"silu","max_position_embeddings":64,"rms_norm_eps":1e-05,
"rope_theta":10000.0,"rope_scaling":{"rope_type":"llama3","factor":8.0,
"low_freq_factor":1.0,"high_freq_factor":4.0,
"original_max_position_embeddings":32},"tie_word_embeddings":true,
"eos_token_id":[1,2],"torch_dtype":"float32"})";

constexpr const char* two_more_models[] = {
  R"({"architectures":["Gemma2ForCausalLM"],"model_type":"gemma2",
"vocab_size":32,"hidden_size":16,"intermediate_size":32,"num_hidden_layers":2,
"num_attention_heads":4,"num_key_value_heads":2,"head_dim":4,
"hidden_activation":"gelu_pytorch_tanh","attn_logit_softcapping":null,
"final_logit_softcapping":6.0,"query_pre_attn_scalar":20,"sliding_window":8,
"layer_types":["sliding_attention","full_attention"]})",
  R"({"architectures":["GPT2LMHeadModel"],"model_type":"gpt2","vocab_size":32,
"n_embd":16,"n_inner":null,"n_layer":2,"n_head":4,"n_positions":64,
"activation_function":"gelu_new","layer_norm_epsilon":1e-05})"};

std::vector<std::string> frames() {
  using namespace net; // NOLINT: a list of its messages
  RowsReply rows;
  rows.request = 3;
  rows.columns.push_back({"logprobs", DType::f32, {1, 2, 3}});
  const std::vector<Message> messages{
    Hello{.token = "secret", .from = WorkerId{1}, .group = "g", .rank = 1},
    Welcome{},
    PullRows{2, Incarnation{1}, StepId{3}, {"values"}, {SampleId{5}}},
    rows,
    PullMemory{4, Incarnation{1}, 1, {{64, 128, 2, 256}}},
    MemoryReply{.request = 4},
    Refusal{.request = 5, .failure = {Errc::stale, "worker 1", "old", ""}}};
  std::vector<std::string> headers;
  for (const Message& message : messages)
    headers.push_back(encode_frame(message, 24));
  return headers;
}

void read_frame(const std::string& input) {
  if (input.size() < net::kPreludeBytes)
    return;
  const auto bytes = bytes_of(input);
  net::decode_prelude(bytes.first<net::kPreludeBytes>(), {1 << 16, 1 << 20});
  net::decode_header(bytes.subspan(net::kPreludeBytes));
}

const std::vector<std::string> api_bodies = {
  R"({"messages": [{"role": "user", "content": [{"text": "a"}]},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "1",
        "function": {"name": "f", "arguments": "{\"x\": [1]}"}}]},
      {"role": "tool", "tool_call_id": "1", "content": "2"}],
      "tools": [{"type": "function"}], "n": 2, "stream": true,
      "stream_options": {"include_usage": true}, "logprobs": true})",
  R"({"prompt": [1, 2], "max_tokens": 3, "stop": "=", "logprobs": 0})",
  R"({"reward": 0.5, "failed": false})",
  R"(so <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>)"};

/// Reads a program's request, and a model's text, which may call tools.
void read_api_body(const std::string& input) {
  models::split_tool_calls(input);
  models::reward_of_output(input);
  for (const auto kind : {models::ApiKind::chat, models::ApiKind::completion})
    try {
      models::parse_api_request(kind, input, {});
    } catch (const models::ApiError&) { // its own answer
    }
  try {
    models::parse_session_report(input);
  } catch (const models::ApiError&) { // its own answer
  }
}

void read_tokenizer(const std::string& input) {
  const auto tokenizer
    = models::Tokenizer::parse(input, "{}", "tokenizer.json");
  const auto ids = tokenizer.encode("abc cab \xff\xc3\xa9 <|end|>");
  tokenizer.decode(ids);
}

std::string small_trace(const std::string& folder) {
  const std::filesystem::path file = std::filesystem::path(folder) / "valid";
  trace::start(file, "fuzz", 1);
  const auto track = trace::track("device 0", trace::TrackKind::device);
  const auto name = trace::name("forward");
  trace::begin(track, name, 1);
  trace::end(track, name);
  trace::stop();
  return read_bytes(file);
}

std::vector<std::string> files_in(const std::filesystem::path& folder) {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".yaml")
      texts.push_back(read_bytes(entry.path()));
  return texts;
}

/// The complete examples: others are merged over one of them.
std::vector<std::string> whole_settings(const std::string& folder) {
  auto files = files_in(folder);
  std::erase_if(files, [](const std::string& text) {
    return text.find("\nworkflow:") == std::string::npos;
  });
  return files;
}

} // namespace

void try_input(const Target& target, const std::string& input) {
  try {
    target.read(input);
  } catch (const ConfigError&) {
  } catch (const PlanError&) {
  } catch (const FailureError&) {
  } catch (const net::WireError&) {
  } catch (const std::invalid_argument&) {
  }
}

std::vector<Target> all_targets(const std::string& folder,
                                const std::string& examples) {
  std::vector<Target> targets{
    {"settings", whole_settings(examples),
     [](const std::string& input) { parse_settings(input, "run.yaml"); }},
    {"plan", files_in(examples + "/plans"),
     [](const std::string& input) { plans::parse_plan(input, "plan.yaml"); }},
    {"launch_script", {small_script}, read_launch_script},
    {"foreign_yaml",
     {"a: ${b.c}\nb: {c: [1, 2]}\nd: ${mul:${b.c}, 3}\n"},
     [](const std::string& input) {
       auto config = plans::yaml_values(
         parse_yaml(input, "theirs.yaml", RepeatedKeys::last_one_counts));
       plans::resolve_references(config);
     }},
    {"allocation",
     {"sglang:d4t2+fsdp:d8", "vllm[rollout]:d8|fsdp[actor]:d8"},
     [](const std::string& input) { plans::parse_allocation(input, {}); }},
    {"strategy",
     {"d4p2t2", "d8z1", "d2c2t4s"},
     [](const std::string& input) { parse_strategy(input); }},
    {"model_shape",
     {small_model, two_more_models[0], two_more_models[1]},
     [folder](const std::string& input) {
       parameters(read_model_shape(as_file(folder, "config.json", input)));
     }},
    {"trace_file",
     {small_trace(folder)},
     [folder](const std::string& input) {
       trace::read_trace(as_file(folder, "x.events", input));
     }},
    {"safetensors",
     {small_safetensors()},
     [](const std::string& input) {
       models::SafetensorsFile::view(bytes_of(input), "model.safetensors");
     }},
    {"tokenizer", {small_tokenizer}, read_tokenizer},
    {"frame", frames(), read_frame},
    {"api_request", api_bodies, read_api_body},
  };
  add_reader_targets(targets, folder);
  return targets;
}

} // namespace troupe::fuzz
