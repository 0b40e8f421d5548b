// tiny_data [--out FOLDER] [--seed N]: creates everything that the demo trains
// on, from nothing but a seed: texts for SFT, preference pairs, prompts for PPO
// and an untrained model with its tokenizer. The same seed yields the same
// bytes.
#include "examples/tiny/base_model.hpp"
#include "examples/tiny/bpe.hpp"
#include "examples/tiny/grammar.hpp"
#include "examples/tiny/json_file.hpp"
#include "examples/tiny/seeded.hpp"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace {

using Json = nlohmann::ordered_json;
using tiny::Question;
using tiny::Review;
using tiny::Seeded;

constexpr int num_texts = 4000;
constexpr int num_train_pairs = 2000;
constexpr int num_test_pairs = 400;

struct Arguments {
  std::filesystem::path out = "runs/tiny_data";
  std::uint64_t seed = 1;
};

constexpr const char* usage
  = "usage: tiny_data [--out FOLDER] [--seed N]\n"
    "writes sft.jsonl, pairs_train.jsonl, pairs_test.jsonl, prompts.jsonl and\n"
    "the untrained model base/ into FOLDER (default runs/tiny_data)\n";

/// Returns nullopt if the command line is invalid.
std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    if (name == "--out") {
      arguments.out = value;
    } else if (name == "--seed") {
      const char* end = value.data() + value.size();
      const auto read = std::from_chars(value.data(), end, arguments.seed);
      if (read.ec != std::errc{} || read.ptr != end)
        return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  if (argc % 2 == 0)
    return std::nullopt;
  return arguments;
}

/// Writes reviews of every kind, most of them unfriendly: the language.
std::string write_texts(const std::vector<Question>& questions,
                        Seeded& random) {
  std::string lines;
  for (int i = 0; i < num_texts; ++i) {
    const Question& question = random.one_of(questions);
    const Review review
      = tiny::write_review(question, tiny::grumpy_mix, random);
    const Json row{{"prompt", question.text}, {"completion", review.text}};
    lines += row.dump() + "\n";
  }
  return lines;
}

/// Writes two reviews of one dish; the kinder one is chosen.
std::string write_pairs(const std::vector<Question>& questions, int count,
                        Seeded& random) {
  std::string lines;
  while (count > 0) {
    const Question& question = random.one_of(questions);
    Review chosen = tiny::write_review(question, tiny::even_mix, random);
    Review rejected = tiny::write_review(question, tiny::even_mix, random);
    if (chosen.kindness < rejected.kindness)
      std::swap(chosen, rejected);
    if (chosen.kindness == rejected.kindness)
      continue;
    const Json row{{"prompt", question.text},
                   {"chosen", chosen.text},
                   {"rejected", rejected.text}};
    lines += row.dump() + "\n";
    --count;
  }
  return lines;
}

std::string write_prompts(std::vector<Question> questions, Seeded& random) {
  random.shuffle(questions);
  std::string lines;
  for (const Question& question : questions)
    lines += Json{{"prompt", question.text}}.dump() + "\n";
  return lines;
}

/// Returns the words of all texts, for the tokenizer.
std::string plain_text(std::string_view lines) {
  std::string text;
  std::size_t begin = 0;
  while (begin < lines.size()) {
    const std::size_t end = lines.find('\n', begin);
    const Json row = Json::parse(lines.substr(begin, end - begin));
    text += row["prompt"].get<std::string>();
    text += row["completion"].get<std::string>();
    begin = end + 1;
  }
  return text;
}

void make_all(const Arguments& arguments) {
  const std::filesystem::path& out = arguments.out;
  std::filesystem::create_directories(out / "base");
  Seeded random(arguments.seed);
  const std::vector<Question> questions = tiny::all_questions();
  const std::string texts = write_texts(questions, random);
  tiny::write_bytes(out / "sft.jsonl", texts);
  tiny::write_bytes(out / "pairs_train.jsonl",
                    write_pairs(questions, num_train_pairs, random));
  tiny::write_bytes(out / "pairs_test.jsonl",
                    write_pairs(questions, num_test_pairs, random));
  tiny::write_bytes(out / "prompts.jsonl", write_prompts(questions, random));

  const tiny::LlamaShape shape;
  const auto vocab = static_cast<std::size_t>(shape.vocab);
  const tiny::Bpe bpe
    = tiny::train_bpe(plain_text(texts), vocab, {"<|endoftext|>", "<|pad|>"});
  tiny::write_tokenizer(bpe, out / "base");
  tiny::write_base_model(shape, shape.vocab - 2, shape.vocab - 1, random,
                         out / "base");
  std::printf("%s: %d texts, %d + %d pairs, %zu prompts, tokenizer of %zu "
              "(%zu merges), untrained model (seed %llu)\n",
              out.c_str(), num_texts, num_train_pairs, num_test_pairs,
              questions.size(), bpe.size(), bpe.merges.size(),
              static_cast<unsigned long long>(arguments.seed));
}

} // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> arguments = parse(argc, argv);
  if (!arguments) {
    std::fputs(usage, stderr);
    return 2;
  }
  try {
    make_all(*arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
