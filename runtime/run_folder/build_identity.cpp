#include "runtime/run_folder/build_identity.hpp"

#include "actors/worker_base/user_calls.hpp"
#include "config/base/text_hash.hpp"
#include "config/base/version.hpp"
#include "config/settings/workflow_file.hpp"
#include "config/settings/workflow_traits.hpp"
#include "models/losses/loss.hpp"
#include "models/rl/functions.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>

namespace troupe::runtime {

namespace {

/// Returns the bytes of the build id among the notes of one segment.
std::span<const unsigned char> find_build_id(std::span<const char> notes) {
  const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof note);
    const auto name = sizeof note;
    const auto value = name + padded(note.n_namesz);
    const auto end = value + padded(note.n_descsz);
    if (end > notes.size())
      return {};
    if (note.n_type == NT_GNU_BUILD_ID
        && std::string_view(notes.data() + name, note.n_namesz)
             == std::string_view("GNU\0", 4))
      return {reinterpret_cast<const unsigned char*>(notes.data() + value),
              note.n_descsz};
    notes = notes.subspan(end);
  }
  return {};
}

/// Callback of dl_iterate_phdr; the first object is the program itself.
int read_own_notes(dl_phdr_info* info, std::size_t, void* out) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const auto* begin
      = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    const auto id = find_build_id({begin, segment.p_memsz});
    for (const auto byte : id.first(std::min<std::size_t>(id.size(), 8)))
      *static_cast<std::string*>(out) += fmt::format("{:02x}", byte);
    if (!id.empty())
      break;
  }
  return 1; // no further objects
}

/// Returns what the program has registered by name: "loss sft_loss", "function
/// ppo_advantages", "workflow ppo".
std::vector<std::string> registered_names() {
  std::vector<std::string> names;
  for (const auto& name : models::losses().names())
    if (!is_python_function(name)) // of a file, which a worker gets
      names.push_back("loss " + name);
  for (const auto& name : models::functions().names())
    names.push_back("function " + name);
  std::ranges::copy(actors::user_names(), std::back_inserter(names));
  for (const auto& name : workflow_names())
    if (!is_workflow_file(name)) // part of the settings that a worker gets
      names.push_back("workflow " + name);
  return names;
}

/// Returns the first 16 digits of the running program's GNU build id; "" if
/// none.
std::string own_build_id() {
  std::string id;
  ::dl_iterate_phdr(read_own_notes, &id);
  return id;
}

} // namespace

std::uint64_t registry_hash(std::vector<std::string> names) {
  std::ranges::sort(names);
  return text_hash(fmt::format("{}\n", fmt::join(names, "\n")));
}

std::string build_identity() {
  const auto id = own_build_id();
  return fmt::format("{} (build {}, registry {:016x})", version_text(),
                     id.empty() ? "unknown" : id,
                     registry_hash(registered_names()));
}

} // namespace troupe::runtime
