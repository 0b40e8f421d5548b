#include "state.hpp"

#include "memory.hpp"
#include "queue.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace troupe::standin {

namespace {

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

long sum_of(const std::map<std::string, long>& counts, const char* part) {
  const Lock lock(mutex());
  long sum = 0;
  for (const auto& [name, count] : counts)
    if (part == nullptr || name.find(part) != std::string::npos)
      sum += count;
  return sum;
}

void print(const char* title, const std::map<std::string, long>& counts) {
  constexpr int widest = 120;
  for (const auto& [name, count] : counts)
    std::fprintf(stderr, "standin: %s %ld x %.*s\n", title, count, widest,
                 name.c_str());
}

} // namespace

State& state() {
  static State& only = *[] {
    auto* made = new State;
    made->num_devices = static_cast<int>(number_of("TROUPE_STANDIN_GPUS", 2));
    made->host = static_cast<int>(number_of("TROUPE_STANDIN_HOST", 0));
    made->device_bytes
      = number_of("TROUPE_STANDIN_MB", made->device_bytes >> 20) << 20;
    queue().seed(number_of("TROUPE_STANDIN_SEED", 0));
    if (std::getenv("TROUPE_STANDIN_PRINT") != nullptr)
      std::atexit(standin_print);
    return made;
  }();
  return only;
}

ThreadState& thread_state() {
  static thread_local ThreadState mine;
  return mine;
}

cudaError_t said(cudaError_t result) {
  if (result != cudaSuccess)
    thread_state().last_error = result;
  return result;
}

cudaError_t after_work(cudaError_t result) {
  const Lock lock(mutex());
  return said(state().sticky != cudaSuccess ? state().sticky : result);
}

void fault(cudaError_t sticky, const std::string& what) {
  const Lock lock(mutex());
  ++state().faults;
  state().last_fault = what;
  if (sticky != cudaSuccess)
    state().sticky = sticky;
  std::fprintf(stderr, "standin: %s\n", what.c_str());
}

void count_wait(const char* call) {
  const Lock lock(mutex());
  ++state().waits[call];
}

void count_launch(const std::string& name) {
  const Lock lock(mutex());
  ++state().launches[name];
}

Shadow::Shadow() : before_(std::exchange(thread_state().is_shadow, true)) {}

Shadow::~Shadow() {
  thread_state().is_shadow = before_;
}

} // namespace troupe::standin

using namespace troupe::standin;

void standin_begin(std::uint64_t seed) {
  const Lock lock(mutex());
  queue().run_ready();
  state().launches.clear();
  state().waits.clear();
  state().bodiless.clear();
  state().faults = 0;
  state().last_fault.clear();
  state().sticky = cudaSuccess;
  queue().seed(seed);
}
void standin_set_memory(std::size_t bytes_of_a_gpu) {
  const Lock lock(mutex());
  state().device_bytes = bytes_of_a_gpu;
}
long standin_launches(const char* part) {
  return sum_of(state().launches, part);
}
long standin_waits(const char* part) {
  return sum_of(state().waits, part);
}
long standin_without_body() {
  return sum_of(state().bodiless, nullptr);
}
long standin_faults() {
  const Lock lock(mutex());
  return state().faults;
}
const char* standin_fault() {
  static thread_local std::string text;
  const Lock lock(mutex());
  text = state().last_fault;
  return text.c_str();
}
std::size_t standin_taken(int device) {
  return memory().taken(device);
}
long standin_waiting() {
  const Lock lock(mutex());
  return static_cast<long>(queue().waiting());
}
void standin_print() {
  const Lock lock(mutex());
  print("launched", state().launches);
  print("waited", state().waits);
  print("without a body", state().bodiless);
  std::fprintf(stderr, "standin: %ld faults\n", state().faults);
}
