// Launch scripts as their shell would read them.
#include "plans/foreign/command_flags.hpp"
#include "plans/foreign/shell_script.hpp"

#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::plans;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace {

/// Returns the words of the only command.
std::vector<std::string>
words_of(const std::string& script,
         const std::map<std::string, std::string>& variables = {}) {
  const auto read = read_shell(script, "run.sh", variables);
  EXPECT_THAT(read.commands, SizeIs(1)) << script;
  std::vector<std::string> words;
  if (!read.commands.empty())
    for (const auto& word : read.commands.front())
      words.push_back(word.text);
  return words;
}

} // namespace

TEST(ShellScript, ContinuedLinesAreOneCommandAndKeepTheirLines) {
  const auto read = read_shell("run a \\\n  --b 1 \\\n  --c=2\n", "run.sh");
  ASSERT_THAT(read.commands, SizeIs(1));
  const auto& words = read.commands[0];
  ASSERT_THAT(words, SizeIs(5));
  EXPECT_EQ(words[4].text, "--c=2");
  EXPECT_EQ(words[4].place.line, 3);
  EXPECT_EQ(words[4].place.file, "run.sh");
}

TEST(ShellScript, VariablesDefaultsAndArithmeticAreResolved) {
  EXPECT_THAT(words_of("A=4\nB=$((A * (2 + 1)))\nrun $A ${B} \"${C:-x y}\" "
                       "$((1024 * 8)) ${D:-$A}\n"),
              ElementsAre("run", "4", "12", "x y", "8192", "4"));
}

TEST(ShellScript, AVariableOfTheEnvironmentWinsOverADefault) {
  EXPECT_THAT(words_of("NNODES=${NNODES:-1}\nrun $NNODES\n", {{"NNODES", "4"}}),
              ElementsAre("run", "4"));
}

TEST(ShellScript, WhatOnlyTheMachineKnowsStaysAsText) {
  EXPECT_THAT(words_of("run $HOME/data \"$(nproc)\" $1\n"),
              ElementsAre("run", "$HOME/data", "$(nproc)", "$1"));
}

TEST(ShellScript, ArraysAreSpelledOutWithoutTheirComments) {
  EXPECT_THAT(words_of("ARGS=(\n  --a 1\n  # --b 2\n  --c \"x y\"\n)\nrun "
                       "${ARGS[@]} \"${NONE[@]}\"\n"),
              ElementsAre("run", "--a", "1", "--c", "x y"));
}

TEST(ShellScript, AnArrayGrowsByPlusAndIsReplacedByEqual) {
  EXPECT_THAT(words_of("A=(--a 1)\nA+=(--b 2)\nA+=(\n  --c 3\n)\nrun "
                       "\"${A[@]}\"\n"),
              ElementsAre("run", "--a", "1", "--b", "2", "--c", "3"));
  EXPECT_THAT(words_of("A=(--a 1)\nA=(--b 2)\nrun ${A[@]}\n"),
              ElementsAre("run", "--b", "2"));
}

TEST(ShellScript, AnArrayInALongerWordKeepsTheWordWhole) {
  EXPECT_THAT(words_of("A=(--a 1)\nrun \"${A[@]} x\" --y 2\n"),
              ElementsAre("run", "${A[@]} x", "--y", "2"));
}

TEST(ShellScript, QuotesKeepBlanksAndSingleOnesKeepDollars) {
  EXPECT_THAT(words_of("A='x $B'\nrun \"$A\" 'it''s' a\\ b\n"),
              ElementsAre("run", "x $B", "its", "a b"));
}

TEST(ShellScript, AnUnquotedVariableIsSplitAtBlanks) {
  EXPECT_THAT(words_of("A=\"--x 1 --y 2\"\nrun $A\n"),
              ElementsAre("run", "--x", "1", "--y", "2"));
}

TEST(ShellScript, AHereDocumentFillsTheVariableOfItsRead) {
  EXPECT_THAT(words_of("read -r -d '' commands <<EOF\nmain.py \\\n   --a "
                       "1\nEOF\ndeepspeed --module $commands\n"),
              ElementsAre("deepspeed", "--module", "main.py", "--a", "1"));
}

TEST(ShellScript, AnEmptyArgumentTakesTheDefaultOfItsCondition) {
  EXPECT_THAT(words_of("STAGE=$3\nif [ \"$STAGE\" == \"\" ]; then\n  "
                       "STAGE=3\nfi\nrun --stage $STAGE\n"),
              ElementsAre("run", "--stage", "3"));
}

TEST(ShellScript, OneBranchOfAConditionRuns) {
  const std::string script = "if [[ $KIND == big ]]; then\n  N=8\nelif [ -z "
                             "\"$KIND\" ]; then\n  N=1\nelse\n  N=2\nfi\nrun "
                             "$N\n";
  EXPECT_THAT(words_of(script, {{"KIND", "big"}}), ElementsAre("run", "8"));
  EXPECT_THAT(words_of(script), ElementsAre("run", "1"));
  EXPECT_THAT(words_of(script, {{"KIND", "small"}}), ElementsAre("run", "2"));
}

TEST(ShellScript, AConditionThatIsNotFollowedIsNoted) {
  const auto read
    = read_shell("if command -v nvcc; then\n  run --a 1\nfi\n", "run.sh");
  EXPECT_THAT(read.commands, IsEmpty());
  ASSERT_THAT(read.notes, SizeIs(1));
  EXPECT_THAT(read.notes[0].text, HasSubstr("condition"));
}

TEST(ShellScript, AKnownTestDecidesWhatFollowsIt) {
  const std::string script
    = "N=1\n[ -n \"$BIG\" ] && N=8\n[[ $KIND == b ]] || M=2\n"
      "[ \"$KIND\" = b ] \\\n  && export L=3 || L=4\nrun $N $M $L\n";
  EXPECT_THAT(words_of(script, {{"BIG", "1"}, {"KIND", "b"}, {"M", "0"}}),
              ElementsAre("run", "8", "0", "3"));
  EXPECT_THAT(words_of(script, {{"KIND", "a"}}),
              ElementsAre("run", "1", "2", "4"));
  EXPECT_THAT(read_shell(script, "run.sh").notes, IsEmpty());
}

TEST(ShellScript, AGroupAfterATestRunsAsAWhole) {
  const std::string script
    = "[ -z \"$A\" ] && { B=1; C=2; } || { B=3; C=4; }\n"
      "[ -n \"$A\" ] && (\n  D=5\n  D=6\n)\nrun $B $C ${D:-7}\n";
  EXPECT_THAT(words_of(script), ElementsAre("run", "1", "2", "7"));
  EXPECT_THAT(words_of(script, {{"A", "x"}}),
              ElementsAre("run", "3", "4", "6"));
}

TEST(ShellScript, AConditionOfSeveralTestsIsTheirs) {
  const std::string script
    = "if [ $A == 1 ] && [ $B == 1 ]; then\n  N=both\nelif [ $A == 1 ] ||\n  "
      "[ $B == 1 ]; then\n  N=one\nelse\n  N=none\nfi\nrun $N\n";
  EXPECT_THAT(words_of(script, {{"A", "1"}, {"B", "1"}}),
              ElementsAre("run", "both"));
  EXPECT_THAT(words_of(script, {{"A", "0"}, {"B", "1"}}),
              ElementsAre("run", "one"));
  EXPECT_THAT(words_of(script, {{"A", "0"}, {"B", "0"}}),
              ElementsAre("run", "none"));
}

TEST(ShellScript, ATestThatIsNotKnownLeavesItsCommandOutWithANote) {
  for (const char* script :
       {"[ -f a ] && N=8\nrun ${N:-1}\n", "[ -f a ] || N=8\nrun ${N:-1}\n",
        "! [ -z x ] && N=8\nrun ${N:-1}\n",
        "if [ -f a ] && [ x == x ]; then\n  N=8\nfi\nrun ${N:-1}\n"}) {
    const auto read = read_shell(script, "run.sh");
    EXPECT_EQ(read.commands.back().back().text, "1") << script;
    ASSERT_THAT(read.notes, SizeIs(1)) << script;
    EXPECT_THAT(read.notes[0].text, HasSubstr("condition is not followed"));
    EXPECT_EQ(read.notes[0].place.line, 1);
  }
}

TEST(ShellScript, ACommandIsTakenToSucceedWithANote) {
  const auto read = read_shell("cd x || exit 1\ncd y && run --a 1\n", "run.sh");
  ASSERT_THAT(read.notes, SizeIs(2));
  EXPECT_THAT(read.notes[0].text, HasSubstr("`||` is left out"));
  EXPECT_THAT(read.notes[1].text, HasSubstr("`&&` is read"));
  EXPECT_EQ(read.notes[1].place.line, 2);
  ASSERT_THAT(read.commands, SizeIs(3));
  EXPECT_EQ(read.commands.back().front().text, "run");
}

TEST(ShellScript, RedirectionsAreNoWords) {
  EXPECT_THAT(words_of("run --a 1 > out.log 2>&1 &\n"),
              ElementsAre("run", "--a", "1"));
  EXPECT_THAT(words_of("run --a 1 &> $OUT/training.log\n"),
              ElementsAre("run", "--a", "1"));
}

TEST(ShellScript, AnyTextIsReadToItsEnd) {
  const std::string pieces[]
    = {"\"",  "'",  "$", "${", "$((", "(",  ")",  "\\", "\n", "<<",  "if",
       "fi ", "[ ", "`", "a=", "&&",  ";;", "#x", " ",  "}}", "done"};
  for (const auto& a : pieces)
    for (const auto& b : pieces)
      for (const auto& c : pieces)
        EXPECT_NO_THROW(read_shell(a + b + c + "\nrun --x 1", "run.sh"))
          << a << b << c;
}

TEST(ShellArithmetic, HasTheShellsPrecedenceAndRefusesTheRest) {
  EXPECT_EQ(shell_arithmetic("2 + 3 * 4", {}), 14);
  EXPECT_EQ(shell_arithmetic("(2 + 3) * -4", {}), -20);
  EXPECT_EQ(shell_arithmetic("17 / 5 % 2", {}), 1);
  EXPECT_EQ(shell_arithmetic("x * ${y}", {{"x", "3"}, {"y", "7"}}), 21);
  EXPECT_EQ(shell_arithmetic("z + 1", {}), std::nullopt);
  EXPECT_EQ(shell_arithmetic("1 / 0", {}), std::nullopt);
  EXPECT_EQ(shell_arithmetic("1 <<", {}), std::nullopt);
}

TEST(ShellArithmetic, WhatDoesNotFitIn64BitsHasNoValue) {
  const std::string most = "9223372036854775807";
  const std::string least = "(-" + most + " - 1)";
  EXPECT_EQ(shell_arithmetic(least, {}), INT64_MIN);
  for (const auto& text : std::vector<std::string>{
         most + " + 1", least + " - 1", most + " * 2", least + " / -1",
         least + " % -1", "-" + least, "99999999999999999999"})
    EXPECT_EQ(shell_arithmetic(text, {}), std::nullopt) << text;
  EXPECT_THAT(
    words_of("N=$((" + most + " + 1))\nrun \"$((" + most + " * 9))\"\n"),
    ElementsAre("run", "$((" + most + " * 9))"));
}

TEST(CommandFlags, FlagsValuesAndOverridesBecomeKeys) {
  const auto config = flags_of(read_shell(
    "set -x\nray job submit --address x -- python3 -m openrlhf.cli.train \\\n"
    " --micro-batch 4 --flag --range 0 1 --lr=1e-6 +a.b=2 ++c=3 ~d\n",
    "run.sh"));
  const auto value = [&](const char* key) {
    const auto* found = config.find(key);
    return found ? found->value : "(none)";
  };
  EXPECT_EQ(value("micro_batch"), "4");
  EXPECT_EQ(value("flag"), "true");
  EXPECT_EQ(value("range"), "0 1");
  EXPECT_EQ(value("lr"), "1e-6");
  EXPECT_EQ(value("a.b"), "2");
  EXPECT_EQ(value("c"), "3");
  EXPECT_EQ(value("address"), "(none)");
  EXPECT_THAT(config.programs, ::testing::Contains("openrlhf.cli.train"));
}

TEST(CommandFlags, AServersFlagsAreItsOwn) {
  const auto config = flags_of(
    read_shell("trl vllm-serve --tensor-parallel-size 2 &\naccelerate launch "
               "--num_processes 4 train.py --use_vllm\n",
               "run.sh"));
  EXPECT_EQ(config.find("vllm_serve.tensor_parallel_size")->value, "2");
  EXPECT_EQ(config.find("num_processes")->value, "4");
  EXPECT_EQ(config.find("use_vllm")->value, "true");
}
