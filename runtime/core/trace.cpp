//===- trace.cpp - What one rank does, call by call -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/trace.h"

#include "core/json.h"
#include "core/status.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

using namespace zero_rt;

/// A line of the file. A span is written in the time of the call that it is
/// of, so this makes no strings.
class Trace::Line {
public:
  explicit Line(std::string &out) : out(out) {}

  Line &operator<<(std::string_view text) {
    out += text;
    return *this;
  }
  Line &operator<<(int64_t number) {
    char text[24];
    return *this << std::string_view(
               text, std::to_chars(text, std::end(text), number).ptr - text);
  }
  /// |text| within a string of JSON.
  Line &quoted(std::string_view text) {
    bool isPlain = std::all_of(text.begin(), text.end(), [](char c) {
      return c >= ' ' && c <= '~' && c != '"' && c != '\\';
    });
    if (isPlain)
      return *this << text;
    std::string all = quote(text);
    return *this << std::string_view(all).substr(1, all.size() - 2);
  }
  /// |number| divided by 1000: nanoseconds as microseconds.
  Line &thousandths(int64_t number) {
    char digits[4] = {'.', char('0' + number / 100 % 10),
                      char('0' + number / 10 % 10), char('0' + number % 10)};
    return *this << number / 1000 << std::string_view(digits, 4);
  }

private:
  std::string &out;
};

template <typename Clock> static int64_t readClock() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(Clock::now().time_since_epoch()).count();
}

int64_t Trace::now() { return readClock<std::chrono::steady_clock>(); }

Trace::Trace(std::string path, int file, int32_t rank)
    : path(std::move(path)), file(file), rank(rank) {}

Trace::~Trace() { (void)finish(); }

static std::string pathOf(const char *folder, int32_t rank) {
  return std::string(folder) + "/rank-" + std::to_string(rank) + ".json";
}

/// Opens the file with |flags| in addition.
static zero_rt_status openFile(const char *folder, const std::string &path,
                               int flags, int &out) {
  if (::mkdir(folder, 0777) != 0 && errno != EEXIST)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->trace: cannot create folder '%s': %s", folder,
                std::strerror(errno));
  out = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
  if (out < 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->trace: cannot write '%s': %s", path.c_str(),
                std::strerror(errno));
  return ZERO_RT_OK;
}

zero_rt_status Trace::prepare(const char *folder, int32_t rank) {
  int file = -1;
  ZERO_RT_TRY(openFile(folder, pathOf(folder, rank), 0, file));
  ::close(file);
  return ZERO_RT_OK;
}

zero_rt_status Trace::create(const char *folder, int32_t rank, int32_t ranks,
                             std::unique_ptr<Trace> &out) {
  std::string path = pathOf(folder, rank);
  int file = -1;
  ZERO_RT_TRY(openFile(folder, path, O_TRUNC, file));
  out.reset(new Trace(std::move(path), file, rank));
  out->unwritten = "[\n";
  out->name("process_name", 0,
            "rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  out->name("start_ns", 0,
            std::to_string(readClock<std::chrono::system_clock>()));
  const char *const streams[ZERO_RT_STREAM_COUNT] = {
      "compute", "collective", "to host", "host", "to device", "caller"};
  for (int32_t i = 0; i < ZERO_RT_STREAM_COUNT; ++i)
    out->name("thread_name", i, streams[i]);
  return ZERO_RT_OK;
}

void Trace::end() {
  constexpr size_t kMost = 1 << 16;
  if (unwritten.size() > kMost)
    flush();
}

void Trace::flush() {
  size_t done = 0;
  while (!hasFailed && done < unwritten.size()) {
    ssize_t count =
        ::write(file, unwritten.data() + done, unwritten.size() - done);
    if (count >= 0)
      done += size_t(count);
    else if (errno != EINTR)
      hasFailed = true;
  }
  unwritten.clear();
}

void Trace::name(const char *what, int32_t stream, const std::string &text) {
  Line(unwritten) << "{\"name\":" << quote(what)
                  << ",\"ph\":\"M\",\"pid\":" << int64_t(rank)
                  << ",\"tid\":" << int64_t(stream)
                  << ",\"args\":{\"name\":" << quote(text) << "}},\n";
}

void Trace::add(const Span &span) {
  std::lock_guard<std::mutex> lock(mutex);
  if (file < 0)
    return;
  Line line(unwritten);
  line << "{\"name\":\"" << span.call;
  if (*span.label)
    (line << " ").quoted(span.label);
  line << "\",\"cat\":\"" << span.call
       << "\",\"ph\":\"X\",\"pid\":" << int64_t(rank)
       << ",\"tid\":" << int64_t(span.stream) << ",\"ts\":";
  line.thousandths(span.begin - start) << ",\"dur\":";
  line.thousandths(span.end - span.begin)
      << ",\"args\":{\"status\":" << int64_t(span.status);
  if (span.bytesSent)
    line << ",\"bytes_sent\":" << span.bytesSent;
  if (span.bytesCopied)
    line << ",\"bytes_copied\":" << span.bytesCopied;
  if (span.launches)
    line << ",\"launches\":" << span.launches;
  // Of the call, with its waits for other ranks.
  if (span.bytesSent && span.end > span.begin)
    (line << ",\"gb_per_s\":")
        .thousandths(std::llround(1000 * double(span.bytesSent) /
                                  double(span.end - span.begin)));
  line << "}},\n";
  end();
}

zero_rt_status Trace::finish() {
  std::lock_guard<std::mutex> lock(mutex);
  if (file < 0)
    return ZERO_RT_OK;
  // The last element of a list has no comma behind it.
  Line line(unwritten);
  line << "{\"name\":\"end\",\"ph\":\"i\",\"s\":\"p\",\"pid\":" << int64_t(rank)
       << ",\"tid\":0,\"ts\":";
  line.thousandths(now() - start) << "}\n]\n";
  flush();
  hasFailed |= ::close(file) != 0;
  file = -1;
  if (!hasFailed)
    return ZERO_RT_OK;
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "options->trace: '%s' could not be written, and is incomplete",
              path.c_str());
}
