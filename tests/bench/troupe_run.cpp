#include "troupe_run.hpp"

#include "config/trace/trace_file.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace troupe::bench {
namespace {

// Restricts the calling process to `count` of its processors: the run and its
// workers size their thread pools by it.
void keep_processors(int count) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  int kept = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &allowed) && kept++ >= count)
      CPU_CLR(i, &allowed);
  sched_setaffinity(0, sizeof allowed, &allowed);
}

// Code of the child between fork and exec.
[[noreturn]] void become_troupe(const RunRequest& request,
                                const std::vector<std::string>& words,
                                int output) {
  keep_processors(request.threads);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : words)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

std::vector<nlohmann::json> read_lines(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);)
    lines.push_back(nlohmann::json::parse(line));
  return lines;
}

double thread_seconds(const std::filesystem::path& task) {
  std::ifstream in(task / "schedstat");
  double ns = 0;
  in >> ns;
  return 1e-9 * ns;
}

double own_cpu_seconds(pid_t pid) {
  double sum = 0;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator(
         "/proc/" + std::to_string(pid) + "/task", gone))
    sum += thread_seconds(task.path());
  return sum;
}

// Adds one process's events to sums by call.
class WorkCounter {
public:
  WorkCounter(std::uint32_t first, std::uint32_t last)
    : first_(first),
      last_(last) {}

  void add(const trace::TraceFile& file) {
    std::map<std::uint32_t, std::vector<std::string>> open; // by track
    for (const trace::Event& event : file.events) {
      const auto track = static_cast<std::uint32_t>(event.track);
      if (file.tracks.at(track).kind != trace::TrackKind::device)
        continue;
      auto& spans = open[track];
      if (event.kind == trace::Kind::end && !spans.empty())
        spans.pop_back();
      if (event.kind != trace::Kind::begin)
        continue;
      spans.push_back(file.names.at(static_cast<std::uint32_t>(event.name)));
      if (event.step >= first_ && event.step <= last_)
        count(spans.front(), spans.back(), event.amount);
    }
  }
  std::map<std::string, CallWork> work_per_step() const {
    const double steps = last_ - first_ + 1;
    auto work = work_;
    for (auto& [call, own] : work) {
      own.optimizer_steps /= steps;
      own.tokens /= steps;
    }
    return work;
  }

private:
  void count(const std::string& call, const std::string& span,
             std::uint64_t amount) {
    if (span == "optimizer")
      work_[call].optimizer_steps += 1;
    if (span == "forward")
      work_[call].tokens += static_cast<double>(amount);
  }

  std::uint32_t first_;
  std::uint32_t last_;
  std::map<std::string, CallWork> work_;
};

} // namespace

std::filesystem::path troupe_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path()
         / "troupe";
}

TroupeRun::TroupeRun(const RunRequest& request) {
  std::vector<std::string> words{troupe_program().string(), "train",
                                 "/dev/null"};
  words.insert(words.end(), request.settings.begin(), request.settings.end());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
  pid_ = fork();
  if (pid_ == 0)
    become_troupe(request, words, ends[1]);
  close(ends[1]);
  output_ = ends[0];
}

TroupeRun::~TroupeRun() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(output_);
}

bool TroupeRun::read_line(std::string& line) {
  std::size_t end = 0;
  while ((end = unread_.find('\n')) == std::string::npos) {
    char bytes[4096];
    const ssize_t count = read(output_, bytes, sizeof bytes);
    if (count <= 0)
      return false;
    unread_.append(bytes, static_cast<std::size_t>(count));
  }
  line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return true;
}

int TroupeRun::wait() {
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

RunSteps run_steps(const RunRequest& request) {
  TroupeRun run(request);
  const auto metrics = request.run_folder / "metrics.jsonl";
  std::vector<double> cpu_at_commit{cpu_seconds(run.pid())};
  std::string crash_report;
  std::size_t known = 0;
  for (std::string line; run.read_line(line);) {
    crash_report = line;
    const std::size_t steps = read_lines(metrics).size();
    for (; known < steps; ++known)
      cpu_at_commit.push_back(cpu_seconds(run.pid()));
  }
  if (const int code = run.wait(); code != 0)
    throw std::runtime_error("troupe train ended with code "
                             + std::to_string(code) + ": " + crash_report);
  RunSteps steps;
  steps.metrics = read_lines(metrics);
  for (const auto& line : steps.metrics)
    steps.wall_s.push_back(line.at("timing_s/step"));
  for (std::size_t i = 1; i < cpu_at_commit.size(); ++i)
    steps.cpu_s.push_back(cpu_at_commit[i] - cpu_at_commit[i - 1]);
  steps.cpu_s.resize(steps.wall_s.size(), 0.0);
  return steps;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> all;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator(
         "/proc/" + std::to_string(pid) + "/task", gone)) {
    std::ifstream in(task.path() / "children");
    for (pid_t child = 0; in >> child;) {
      all.push_back(child);
      for (const pid_t more : children_of(child))
        all.push_back(more);
    }
  }
  return all;
}

double cpu_seconds(pid_t pid) {
  double sum = own_cpu_seconds(pid);
  for (const pid_t child : children_of(pid))
    sum += own_cpu_seconds(child);
  return sum;
}

std::map<std::string, CallWork>
traced_work(const std::filesystem::path& run_folder, std::uint32_t first,
            std::uint32_t last) {
  WorkCounter counter(first, last);
  for (const auto& entry :
       std::filesystem::directory_iterator(run_folder / "trace"))
    if (entry.path().extension() == ".events")
      counter.add(trace::read_trace(entry.path()));
  return counter.work_per_step();
}

} // namespace troupe::bench
