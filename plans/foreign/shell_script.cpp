#include "plans/foreign/shell_script.hpp"

#include "plans/foreign/shell_test.hpp"
#include "plans/foreign/shell_words.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>

namespace troupe::plans {

namespace {

class ShellReader : ShellWords {
public:
  ShellReader(const std::string& text, const std::string& file,
              std::map<std::string, std::string> variables)
    : ShellWords(text, file, std::move(variables)) {}

  ShellScript read() {
    while (at_ < text_.size())
      read_command();
    return std::move(script_);
  }

private:
  void note(std::string text) {
    if (runs())
      script_.notes.push_back({here(), std::move(text)});
  }
  bool runs() const {
    return !skips_ && std::ranges::all_of(branches_, [](const Branch& branch) {
      return branch.on;
    });
  }

  bool ends_command() const {
    return at_ >= text_.size()
           || std::string_view("\n;|)").find(peek()) != std::string_view::npos
           || (peek() == '&' && peek(1) != '>');
  }

  void read_command() {
    ShellCommand command;
    bool assigns = true; // NAME=VALUE before the command's first word
    bool assigned = false;
    begin_command();
    for (skip_blanks(); !ends_command(); skip_blanks()) {
      const auto before = at_;
      if (peek() == '<' || peek() == '>' || peek() == '&'
          || (std::isdigit(static_cast<unsigned char>(peek())) != 0
              && (peek(1) == '>' || peek(1) == '<'))) {
        read_redirection(command);
        continue;
      }
      if (assigns && read_assignment()) {
        assigned = true;
        continue;
      }
      if (assigns && peek() == '(' && peek(1) != '(') {
        take();
        open_group('(');
        continue;
      }
      auto words = read_words();
      if (at_ == before)
        take(); // a parenthesis
      if (assigns && words.size() == 1 && is_declaration(words[0].text))
        continue;
      assigns = false;
      std::ranges::move(words, std::back_inserter(command));
      if (command.size() == 1 && opens_block(command[0].text)) {
        command.clear();
        assigns = true;
      }
    }
    if (command.empty() && assigned && runs())
      end_list({.value = true});
    finish(std::move(command));
    join_ = Join::none;
    if (at_ < text_.size())
      take_end();
    skips_ = false;
  }

  static bool is_declaration(const std::string& word) {
    static const std::set<std::string> words
      = {"export", "local", "declare", "readonly", "typeset"};
    return words.contains(word);
  }

  /// Words after which another command begins on the same line.
  bool opens_block(const std::string& word) {
    if (word == "do" || word == "time")
      return true;
    if (word == "{") {
      open_group('{');
      return true;
    }
    if (word == "if") {
      open({.on = runs(), .taken = !runs(), .tests = true});
      return true;
    }
    if (branches_.empty())
      return false;
    auto& branch = branches_.back();
    if (word == "elif") {
      branch.on = !branch.taken;
      branch.tests = true;
      return true;
    }
    if (word == "then") {
      decide(branch);
      return true;
    }
    if (word == "else") {
      branch.on = !branch.taken;
      branch.taken = true;
      return true;
    }
    return false;
  }

  void take_end() {
    if (starts("&&") || starts("||")) {
      join_ = peek() == '&' ? Join::if_true : Join::if_false;
      at_ += 2;
      return;
    }
    const char letter = take();
    if (letter == '\n')
      read_documents();
    if (letter == ')')
      close_group('(');
  }

  // --- lists: `a && b || c` -----------------------------------------------

  /// The operator before a command.
  enum class Join : std::uint8_t { none, if_true, if_false };
  /// End of a command, as far as it is known.
  struct Status {
    std::optional<bool> value = {}; ///< none: only a run would tell
    bool of_test = false;           ///< of `[ ]` or `[[ ]]`
  };

  bool is_in_condition() const {
    return !branches_.empty() && branches_.back().tests;
  }

  /// Decides whether the command that begins runs, by what is before it.
  void begin_command() {
    if (join_ == Join::none)
      return;
    for (skip_blanks(); peek() == '\n'; skip_blanks()) {
      take();
      read_documents();
    }
    const bool if_true = join_ == Join::if_true;
    if (status_.value) {
      skips_ = *status_.value != if_true;
      return;
    }
    if (is_in_condition())
      return; // of three values, see end_list()
    const bool succeeds = !status_.of_test;
    if (if_true && succeeds) {
      note("what follows `&&` is read as if the command before it succeeded");
      return;
    }
    note(succeeds ? "what follows `||` is left out, as if the command before "
                    "it succeeded"
                  : "a condition is not followed, its command is left out");
    skips_ = true;
  }

  /// Ends a list with a command that ran. In a condition, one whose value is
  /// not known before `&&` leaves only false known, before `||` only true.
  void end_list(Status status) {
    const bool is_open
      = is_in_condition() && join_ != Join::none && !status_.value;
    if (is_open && status.value != (join_ == Join::if_false))
      status.value.reset();
    status_ = status;
  }

  void open_group(char kind) {
    open({.on = runs(), .group = kind, .before = status_});
  }

  void close_group(char kind) {
    if (branches_.empty() || branches_.back().group != kind)
      return;
    if (!branches_.back().on)
      status_ = branches_.back().before;
    branches_.pop_back();
  }

  // --- conditions ---------------------------------------------------------

  /// A branch of an `if`, a loop, a `case`; a group of commands.
  struct Branch {
    bool on = true;     ///< its commands run
    bool taken = false; ///< one of its branches did
    bool tests = false; ///< its condition is being read
    char group = 0;     ///< the parenthesis that opened it
    Status before = {}; ///< of the command before a group
  };

  /// Begins a block; what is before it has decided whether it runs.
  void open(Branch branch) {
    branches_.push_back(branch);
    skips_ = false;
    join_ = Join::none;
  }

  /// Takes the branch of an `if` whose condition has been read.
  void decide(Branch& branch) {
    if (!branch.tests)
      return;
    if (!status_.value)
      note("a condition is not followed, its commands are left out");
    branch.tests = false;
    branch.on = branch.on && status_.value.value_or(false);
    branch.taken |= branch.on;
  }

  void finish(ShellCommand command) {
    if (command.empty())
      return;
    const auto word = command.front().text;
    if (word == "for" || word == "while" || word == "until") {
      enter_loop(command);
    } else if (word == "case") {
      note("a `case` is not followed");
      branches_.push_back({.on = false});
    } else if (word == "fi" || word == "done" || word == "esac") {
      if (!branches_.empty())
        branches_.pop_back();
      status_ = {};
    } else if (word == "}") {
      close_group('{');
    } else if (runs()) {
      const bool in_condition = is_in_condition();
      const bool tests = is_shell_test(command);
      end_list({.value = value_of_test(command), .of_test = tests});
      if (!in_condition && !tests && !read_into_variable(command))
        script_.commands.push_back(std::move(command));
    }
  }

  /// Follows the first round of a loop.
  void enter_loop(const ShellCommand& command) {
    if (command.size() > 3 && command[0].text == "for"
        && command[2].text == "in") {
      if (runs())
        variables_[command[1].text] = command[3].text;
      if (command.size() > 4)
        note("of a loop only the first round is read");
    } else {
      note("a loop is read once");
    }
    branches_.push_back({.on = runs()});
  }

  // --- assignments --------------------------------------------------------

  /// Reads NAME=VALUE or NAME=(WORDS); returns false, reading nothing, if the
  /// next word is neither.
  bool read_assignment() {
    std::size_t length = 0;
    while (is_name_letter(peek(length)))
      ++length;
    const std::string name = text_.substr(at_, length);
    const bool adds = peek(length) == '+';
    if (!is_shell_name(name) || peek(length + adds) != '=')
      return false;
    at_ += length + adds + 1;
    if (peek() == '(') {
      take();
      auto words = read_array();
      if (!runs())
        return true;
      auto& array = arrays_[name];
      if (!adds)
        array.clear();
      std::ranges::move(words, std::back_inserter(array));
      return true;
    }
    std::string value;
    for (const auto& part : read_parts())
      value += part.text;
    if (!runs())
      return true;
    auto& variable = variables_[name];
    variable = adds ? variable + value : value;
    if (variable.size() > longest_shell_value)
      variable.resize(longest_shell_value);
    return true;
  }

  std::vector<ShellWord> read_array() {
    std::vector<ShellWord> words;
    while (at_ < text_.size()) {
      skip_blanks();
      if (peek() == '\n') {
        take();
      } else if (peek() == ')') {
        take();
        break;
      } else if (at_ < text_.size()) {
        const auto before = at_;
        auto more = read_words();
        if (at_ == before)
          take(); // what ends words outside an array
        std::ranges::move(more, std::back_inserter(words));
      }
    }
    return words;
  }

  // --- here-documents -----------------------------------------------------

  struct Document {
    std::string end;
    std::string variable; ///< that `read` fills; empty: none
  };

  void read_redirection(const ShellCommand& command) {
    const bool document = starts("<<") && !starts("<<<");
    const auto begin = at_;
    while (at_ < text_.size()
           && std::string_view("<>&-0123456789").find(peek())
                != std::string_view::npos)
      ++at_;
    const auto copied = text_.find(">&", begin);
    if (copied < at_ && copied + 2 < at_)
      return; // 2>&1 names no file
    skip_blanks();
    std::string target;
    for (const auto& part : read_parts())
      target += part.text;
    if (!document)
      return;
    Document found{.end = target};
    if (!command.empty() && command[0].text == "read")
      found.variable = command.back().text;
    documents_.push_back(found);
  }

  /// Reads the documents that begin after this line.
  void read_documents() {
    for (const auto& document : documents_) {
      std::string content;
      while (at_ < text_.size()) {
        const auto end = std::min(text_.find('\n', at_), text_.size());
        const auto line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        ++line_;
        const auto first = line.find_first_not_of('\t');
        if (first != line.npos && line.substr(first) == document.end)
          break;
        content += line + "\n";
      }
      if (!document.variable.empty() && runs())
        variables_[document.variable] = content;
    }
    documents_.clear();
  }

  /// A `read` whose variable a document has filled.
  static bool read_into_variable(const ShellCommand& command) {
    return command[0].text == "read";
  }

  std::vector<Branch> branches_;
  Join join_ = Join::none; ///< before the command that is read
  bool skips_ = false;     ///< it does not run
  Status status_;
  std::vector<Document> documents_;
  ShellScript script_;
};

} // namespace

ShellScript read_shell(const std::string& text, const std::string& file,
                       const std::map<std::string, std::string>& variables) {
  return ShellReader(text, file, variables).read();
}

} // namespace troupe::plans
