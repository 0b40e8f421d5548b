// tokenize: one JSON value a line from stdin, its tokens (or text) to stdout.
#include "config/error.hpp"
#include "models/chat_template.hpp"
#include "models/tokenizer.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

struct TokenizeOptions : VerbOptions {
  std::string model;
  bool decode = false;
  bool chat = false;
};

[[noreturn]] void wrong_line(int line, const std::string& expected,
                             const std::string& got) {
  throw ConfigError({.place = {"stdin", line},
                     .path = "",
                     .expected = expected,
                     .got = got.substr(0, 60),
                     .hint = ""});
}

std::vector<std::int32_t> chat_ids(const models::Tokenizer& tokenizer,
                                   const Json& value, int line) {
  const Json& list = value.is_object() && value.contains("messages")
                       ? value["messages"]
                       : value;
  std::vector<models::Message> messages;
  for (const auto& entry : list) {
    if (!entry.is_object() || !entry.contains("role")
        || !entry["role"].is_string() || !entry.contains("content")
        || !entry["content"].is_string())
      wrong_line(line, "messages with role and content", value.dump());
    messages.push_back(
      {entry["role"].get<std::string>(), entry["content"].get<std::string>()});
  }
  if (messages.empty())
    wrong_line(line, "a list of messages", value.dump());
  return models::encode_chat(tokenizer, messages, true);
}

Json decoded(const models::Tokenizer& tokenizer, const Json& value, int line) {
  std::vector<std::int32_t> ids;
  if (!value.is_array())
    wrong_line(line, "a list of token ids", value.dump());
  for (const auto& id : value) {
    if (!id.is_number_integer())
      wrong_line(line, "a list of token ids", value.dump());
    ids.push_back(id.get<std::int32_t>());
  }
  return tokenizer.decode(ids, false);
}

Json encoded(const models::Tokenizer& tokenizer, const Json& value, int line) {
  if (!value.is_string())
    wrong_line(line, "a JSON text such as \"hello\"", value.dump());
  return tokenizer.encode(value.get<std::string>());
}

int tokenize(const TokenizeOptions& options) {
  if (options.decode && options.chat)
    throw ConfigError({"command line", 0},
                      "--decode and --chat exclude each other");
  const auto tokenizer = models::Tokenizer::load(options.model);
  int number = 0;
  for (std::string text; std::getline(std::cin, text);) {
    ++number;
    if (text.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    const Json value = Json::parse(text, nullptr, false);
    if (value.is_discarded())
      wrong_line(number, "one JSON value a line", text);
    const Json result = options.decode ? decoded(tokenizer, value, number)
                        : options.chat
                          ? Json(chat_ids(tokenizer, value, number))
                          : encoded(tokenizer, value, number);
    std::cout << result.dump(-1, ' ', false, Json::error_handler_t::replace)
              << "\n"
              << std::flush;
  }
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_tokenize(CLI::App& app, VerbRun& chosen) {
  auto* verb = app.add_subcommand(
    "tokenize", "Texts on stdin (a JSON value a line) to token ids");
  auto options = std::make_shared<TokenizeOptions>();
  verb->add_option("--model", options->model, "Folder with tokenizer.json")
    ->type_name("DIR")
    ->required();
  verb->add_flag("--decode", options->decode, "From lists of ids to texts");
  verb->add_flag("--chat", options->chat,
                 "From lists of messages, through the chat template");
  add_verb_options(*verb, *options, false);
  verb->callback(
    [options, &chosen] { chosen = [options] { return tokenize(*options); }; });
}

} // namespace troupe::runtime
