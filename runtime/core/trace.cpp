//===- trace.cpp - What one rank does, call by call -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/trace.h"

#include "core/json.h"
#include "core/status.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace zero_rt;

/// |nanoseconds| as microseconds.
static std::string micros(int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%lld.%03lld",
                (long long)(nanoseconds / 1000),
                (long long)(nanoseconds % 1000));
  return text;
}

template <typename Clock> static int64_t readClock() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(Clock::now().time_since_epoch()).count();
}

int64_t Trace::now() { return readClock<std::chrono::steady_clock>(); }

Trace::Trace(std::string path, int file, int32_t rank)
    : path(std::move(path)), file(file), rank(rank) {}

Trace::~Trace() { (void)finish(); }

zero_rt_status Trace::create(const char *folder, int32_t rank, int32_t ranks,
                             std::unique_ptr<Trace> &out) {
  if (::mkdir(folder, 0777) != 0 && errno != EEXIST)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->trace: cannot create folder '%s': %s", folder,
                std::strerror(errno));
  std::string path =
      std::string(folder) + "/rank-" + std::to_string(rank) + ".json";
  int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->trace: cannot write '%s': %s", path.c_str(),
                std::strerror(errno));
  out.reset(new Trace(std::move(path), file, rank));
  out->append("[\n");
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

void Trace::append(const std::string &line) {
  constexpr size_t kMost = 1 << 16;
  unwritten += line;
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
  append("{\"name\":" + quote(what) + ",\"ph\":\"M\",\"pid\":" +
         std::to_string(rank) + ",\"tid\":" + std::to_string(stream) +
         ",\"args\":{\"name\":" + quote(text) + "}},\n");
}

void Trace::add(const Span &span) {
  std::string title = span.call;
  if (*span.label)
    title += std::string(" ") + span.label;
  std::string line = "{\"name\":" + quote(title) +
                     ",\"cat\":" + quote(span.call) +
                     ",\"ph\":\"X\",\"pid\":" + std::to_string(rank) +
                     ",\"tid\":" + std::to_string(span.stream) +
                     ",\"ts\":" + micros(span.begin - start) +
                     ",\"dur\":" + micros(span.end - span.begin) +
                     ",\"args\":{\"status\":" + std::to_string(span.status);
  auto argument = [&](const char *key, int64_t value) {
    if (value)
      line += std::string(",\"") + key + "\":" + std::to_string(value);
  };
  argument("bytes_sent", span.bytesSent);
  argument("bytes_copied", span.bytesCopied);
  argument("launches", span.launches);
  // Of the call, with its waits for other ranks.
  if (span.bytesSent && span.end > span.begin) {
    char text[48];
    std::snprintf(text, sizeof(text), ",\"gb_per_s\":%.3f",
                  double(span.bytesSent) / double(span.end - span.begin));
    line += text;
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (file >= 0)
    append(line + "}},\n");
}

zero_rt_status Trace::finish() {
  std::lock_guard<std::mutex> lock(mutex);
  if (file < 0)
    return ZERO_RT_OK;
  // The last element of a list has no comma behind it.
  append("{\"name\":\"end\",\"ph\":\"i\",\"s\":\"p\",\"pid\":" +
         std::to_string(rank) + ",\"tid\":0,\"ts\":" + micros(now() - start) +
         "}\n]\n");
  flush();
  hasFailed |= ::close(file) != 0;
  file = -1;
  if (!hasFailed)
    return ZERO_RT_OK;
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "options->trace: '%s' could not be written, and is incomplete",
              path.c_str());
}
