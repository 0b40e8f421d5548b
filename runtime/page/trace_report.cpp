#include "runtime/page/trace_report.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/base64.hpp"
#include "config/base/error.hpp"
#include "runtime/page/run_feed.hpp"
#include "runtime/page/trace_server.hpp"

#include <zlib.h>

namespace troupe::runtime {

namespace {

constexpr std::string_view recorded_mark = "<!--RECORDED-->";
constexpr int gzip_window_bits = 15 + 16; ///< 16: with gzip's own head

/// Appends a message as the page reads it: {u8 binary, u32 bytes, bytes}.
void append_frame(const FeedMessage& message, std::string& frames) {
  const auto bytes = static_cast<std::uint32_t>(message.bytes.size());
  frames += message.binary ? '\1' : '\0';
  frames.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  frames += message.bytes;
}

std::string gzipped(std::string_view bytes) {
  z_stream stream{};
  TROUPE_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                            gzip_window_bits, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY)
                 == Z_OK,
               "zlib cannot begin");
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in
    = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data())); // read only
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const auto ended = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  TROUPE_CHECK(ended == Z_STREAM_END, "zlib cannot end");
  return packed;
}

} // namespace

std::string page_with(std::string_view page, std::string_view frames) {
  const auto mark = page.find(recorded_mark);
  TROUPE_CHECK(mark != std::string_view::npos, "the page has no mark");
  std::string whole(page.substr(0, mark));
  whole += "<script type=\"text/plain\" id=\"recorded\">";
  whole += to_base64(gzipped(frames));
  whole += "</script>";
  whole += page.substr(mark + recorded_mark.size());
  return whole;
}

std::uint64_t write_trace_report(const RunFolder& folder,
                                 const std::filesystem::path& file) {
  RunFeed feed(folder);
  std::string frames;
  do
    for (const auto& message : feed.next())
      append_frame(message, frames);
  while (!feed.is_loaded());
  const auto page = page_with(trace_page(), frames);
  AtomicFile out(file, "trace report");
  out.write(page);
  out.commit();
  return page.size();
}

} // namespace troupe::runtime
