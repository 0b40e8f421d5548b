#include "actors/membership/files_actor.hpp"

#include "actors/protocol/pull_bytes.hpp"
#include "config/base/atomic_file.hpp"
#include "config/base/defaults.hpp"
#include "models/io/mapped_file.hpp"
#include "models/records/rollout_record.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

namespace troupe::actors {

namespace fs = std::filesystem;

namespace {

using FilesSelf = Self<FilesActor, FilesState>;

/// Files of a model's folder; others (weights in formats that nobody here
/// reads, pictures) are not served.
constexpr std::array<std::string_view, 5> model_endings
  = {".json", ".safetensors", ".txt", ".model", ".jinja"};

bool is_file_of_model(const fs::path& file) {
  return std::ranges::find(model_endings, file.extension().string())
         != model_endings.end();
}

void add_file(std::map<std::string, SharedFile>& files, const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode))
    return;
  const auto name = path.lexically_normal().string();
  files[name]
    = {.path = name,
       .bytes = static_cast<std::uint64_t>(found.st_size),
       .changed_ns = found.st_mtim.tv_sec * std::int64_t{1'000'000'000}
                     + found.st_mtim.tv_nsec};
}

} // namespace

std::vector<SharedFile> list_files(const std::vector<fs::path>& paths) {
  std::map<std::string, SharedFile> files;
  for (const auto& path : paths) {
    std::error_code ignored;
    add_file(files, path);
    for (const auto& entry : fs::directory_iterator(path, ignored))
      if (is_file_of_model(entry.path()))
        add_file(files, entry.path());
  }
  std::vector<SharedFile> list;
  for (auto& [_, file] : files)
    list.push_back(std::move(file));
  return list;
}

FileServer::~FileServer() {
  stop();
}

void FileServer::stop() {
  const std::lock_guard lock{mutex_};
  if (data_plane_)
    data_plane_->stop();
}

net::DataPlane& FileServer::data_plane() {
  const std::lock_guard lock{mutex_};
  if (!data_plane_)
    throw FailureError{{.code = Errc::refused,
                        .who = "master",
                        .what = "takes no file of a worker that opened none",
                        .cause = ""}};
  return *data_plane_;
}

void FileServer::serve() {
  auto files = list_files(setup_.read);
  auto data_plane = setup_.listen();
  data_plane->begin(setup_.incarnation);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto file = std::make_shared<models::MappedFile>(files[i].path);
    files[i].bytes = file->bytes().size();
    data_plane->export_memory(shared_file_id(i), file->bytes().data(),
                              file->bytes().size(), file);
  }
  served_ = {.data_port = data_plane->port(), .files = std::move(files)};
  data_plane_ = std::move(data_plane);
}

OpenFilesDone FileServer::open(const OpenFilesOrder& order) {
  if (setup_.must_be_shared)
    throw ConfigError(
      {.place = {},
       .path = "cluster.shared_files",
       .expected = "hosts that share the run folder, for true",
       .got = fmt::format("worker {} on {}, which does not see {}",
                          order.worker.value, order.host,
                          fs::absolute(setup_.run_folder).string()),
       .hint = "cluster.shared_files=auto"});
  const std::lock_guard lock{mutex_};
  if (!data_plane_)
    serve();
  data_plane_->set_peer(order.worker, order.host, order.data_port);
  return served_;
}

fs::path FileServer::place_of(const std::string& file) const {
  const auto normal = fs::path(file).lexically_normal();
  if (normal.empty() || normal.is_absolute() || *normal.begin() == "..")
    throw FailureError{{.code = Errc::refused,
                        .who = "master",
                        .what = "takes no file outside the run folder: " + file,
                        .cause = ""}};
  const auto place = setup_.run_folder / normal;
  std::error_code ignored; // opening the file says what is wrong
  fs::create_directories(place.parent_path(), ignored);
  return place;
}

template <class Write>
void FileServer::pull(const TakeFileOrder& order, Write write) {
  std::vector<std::byte> part;
  for (std::uint64_t offset = 0; offset < order.bytes; offset += part.size()) {
    part.resize(std::min<std::uint64_t>(order.bytes - offset,
                                        defaults::move_chunk_bytes));
    pull_bytes(data_plane(), order.worker, shared_file_id(order.number), offset,
               part);
    write(part);
  }
}

TakeFileDone FileServer::take(const TakeFileOrder& order) {
  const auto place = place_of(order.file);
  switch (order.how) {
  case TakeFile::whole: {
    AtomicFile file(place, "master");
    pull(order, [&](const auto& part) { file.write(part); });
    file.commit();
    break;
  }
  case TakeFile::append: {
    models::AppendFile file(place);
    pull(order, [&](const auto& part) {
      file.append({reinterpret_cast<const char*>(part.data()), part.size()});
    });
    break;
  }
  case TakeFile::remove:
    std::error_code ignored; // another process removes old traces too
    fs::remove(place, ignored);
    break;
  }
  return {order.bytes};
}

namespace {

template <class Done, class Work>
caf::result<Done> on_file_thread(FilesSelf self, JobThread& thread,
                                 const Context& context, std::string what,
                                 Work work) {
  Reply<Done> reply{self, context};
  if (context.incarnation != self->state.incarnation)
    return to_error({.code = Errc::stale,
                     .who = "master",
                     .what = "a file of an older incarnation",
                     .cause = ""});
  run_job<Done>(thread, std::move(what), self->state.open.open(self, reply),
                std::move(work));
  return reply.promise();
}

} // namespace

FilesState::~FilesState() {
  if (server)
    server->stop();
}

FilesActor::behavior_type files_actor(FilesSelf self, FilesSetup setup) {
  auto& state = self->state;
  state.incarnation = setup.incarnation;
  state.server = std::make_shared<FileServer>(std::move(setup));
  state.files = std::make_shared<JobThread>("files");
  state.lines = std::make_shared<JobThread>("lines");
  return {
    [=](open_atom, const Context& context, const OpenFilesOrder& order) {
      return on_file_thread<OpenFilesDone>(
        self, *self->state.lines, context, "master, open files",
        [server = self->state.server, order] { return server->open(order); });
    },
    [=](take_atom, const Context& context, const TakeFileOrder& order) {
      auto& thread = order.how == TakeFile::whole ? *self->state.files
                                                  : *self->state.lines;
      return on_file_thread<TakeFileDone>(
        self, thread, context, "master, take " + order.file,
        [server = self->state.server, order] { return server->take(order); });
    },
    [=](done_atom, std::uint64_t id) { self->state.open.finish(id); },
  };
}

} // namespace troupe::actors
