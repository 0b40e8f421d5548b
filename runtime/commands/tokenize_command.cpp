// tokenize: one JSON value per line from stdin, its tokens (or text) to stdout.
#include "config/base/error.hpp"
#include "config/base/json_levels.hpp"
#include "models/text/chat_template.hpp"
#include "models/text/tokenizer.hpp"
#include "runtime/commands/command.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <optional>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

struct TokenizeOptions : CommandOptions {
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

Json decoded(const models::Tokenizer& tokenizer, const Json& value, int line) {
  std::vector<std::int32_t> ids;
  if (!value.is_array())
    wrong_line(line, "a list of token ids", value.dump());
  for (const auto& id : value) {
    if (!id.is_number_integer() || id < 0 || id > INT32_MAX)
      wrong_line(line, "a list of token ids", value.dump());
    ids.push_back(id.get<std::int32_t>());
  }
  return tokenizer.decode(ids, /*skip_special=*/false);
}

Json encoded(const models::Tokenizer& tokenizer, const Json& value, int line) {
  if (!value.is_string())
    wrong_line(line, "a JSON text such as \"hello\"", value.dump());
  return tokenizer.encode(value.get<std::string>());
}

/// Encodes a list of messages as a prompt: the assistant speaks next.
Json chat_encoded(const models::Tokenizer& tokenizer,
                  const models::ChatTemplate& chat, const Json& value,
                  int line) {
  if (!value.is_array())
    wrong_line(line, "a list of messages", value.dump());
  return tokenizer.encode(chat.render(value, /*add_generation_prompt=*/true),
                          /*special=*/false);
}

int tokenize(const TokenizeOptions& options) {
  const auto tokenizer = models::Tokenizer::load(options.model);
  std::optional<models::ChatTemplate> chat;
  if (options.chat)
    chat.emplace(tokenizer);
  int number = 0;
  for (std::string text; std::getline(std::cin, text);) {
    ++number;
    if (text.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    const Json value = nests_too_deep(text) ? Json(Json::value_t::discarded)
                                            : Json::parse(text, nullptr, false);
    if (value.is_discarded())
      wrong_line(number, "one JSON value a line", text);
    const Json result = options.decode ? decoded(tokenizer, value, number)
                        : chat ? chat_encoded(tokenizer, *chat, value, number)
                               : encoded(tokenizer, value, number);
    print_out(result.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_tokenize(CLI::App& app, CommandRun& chosen) {
  auto* command = app.add_subcommand(
    "tokenize", "Texts on stdin (a JSON value a line) to token ids");
  auto options = std::make_shared<TokenizeOptions>();
  command->add_option("--model", options->model, "Folder with tokenizer.json")
    ->type_name("DIR")
    ->required();
  auto* decode = command->add_flag("--decode", options->decode,
                                   "From lists of ids to texts");
  command
    ->add_flag("--chat", options->chat,
               "From lists of messages, through the chat template")
    ->excludes(decode);
  add_quiet_option(*command, *options);
  command->callback(
    [options, &chosen] { chosen = [options] { return tokenize(*options); }; });
}

} // namespace troupe::runtime
