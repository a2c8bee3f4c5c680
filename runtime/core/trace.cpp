//===- trace.cpp - What one rank does, call by call -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/trace.h"

#include "core/status.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/stat.h>

using namespace zero_rt;

/// |text| as a string of JSON.
static std::string quote(const char *text) {
  std::string quoted = "\"";
  for (; *text; ++text) {
    auto c = static_cast<unsigned char>(*text);
    char escaped[8];
    if (c == '"' || c == '\\')
      std::snprintf(escaped, sizeof(escaped), "\\%c", c);
    else if (c < 0x20)
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", c);
    else
      std::snprintf(escaped, sizeof(escaped), "%c", c);
    quoted += escaped;
  }
  return quoted + "\"";
}

/// |nanoseconds| as microseconds.
static std::string micros(int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%lld.%03lld",
                (long long)(nanoseconds / 1000),
                (long long)(nanoseconds % 1000));
  return text;
}

int64_t Trace::now() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch())
      .count();
}

Trace::Trace(std::string path, std::FILE *file, int32_t rank)
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
  std::FILE *file = std::fopen(path.c_str(), "we");
  if (!file)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->trace: cannot write '%s': %s", path.c_str(),
                std::strerror(errno));
  out.reset(new Trace(std::move(path), file, rank));
  out->write("[\n");
  out->name("process_name", 0,
            "rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  const char *const streams[ZERO_RT_STREAM_COUNT] = {
      "compute", "collective", "to host", "host", "to device", "caller"};
  for (int32_t i = 0; i < ZERO_RT_STREAM_COUNT; ++i)
    out->name("thread_name", i, streams[i]);
  return ZERO_RT_OK;
}

void Trace::write(const std::string &line) {
  if (file && std::fwrite(line.data(), 1, line.size(), file) != line.size())
    hasFailed = true;
}

void Trace::name(const char *what, int32_t stream, const std::string &text) {
  write("{\"name\":" + quote(what) + ",\"ph\":\"M\",\"pid\":" +
        std::to_string(rank) + ",\"tid\":" + std::to_string(stream) +
        ",\"args\":{\"name\":" + quote(text.c_str()) + "}},\n");
}

void Trace::add(const Span &span) {
  std::string title = span.call;
  if (*span.label)
    title += std::string(" ") + span.label;
  std::string line = "{\"name\":" + quote(title.c_str()) +
                     ",\"cat\":" + quote(span.call) +
                     ",\"ph\":\"X\",\"pid\":" + std::to_string(rank) +
                     ",\"tid\":" + std::to_string(span.stream) +
                     ",\"ts\":" + micros(span.begin) +
                     ",\"dur\":" + micros(span.end - span.begin) +
                     ",\"args\":{\"status\":" + std::to_string(span.status);
  auto argument = [&](const char *key, int64_t value) {
    if (value)
      line += std::string(",\"") + key + "\":" + std::to_string(value);
  };
  argument("bytes_sent", span.bytesSent);
  argument("bytes_copied", span.bytesCopied);
  argument("launches", span.launches);
  std::lock_guard<std::mutex> lock(mutex);
  write(line + "}},\n");
}

zero_rt_status Trace::finish() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!file)
    return ZERO_RT_OK;
  // The last element of a list has no comma behind it.
  write("{\"name\":\"end\",\"ph\":\"i\",\"s\":\"p\",\"pid\":" +
        std::to_string(rank) + ",\"tid\":0,\"ts\":" + micros(now()) + "}\n]\n");
  hasFailed |= std::fclose(file) != 0;
  file = nullptr;
  if (!hasFailed)
    return ZERO_RT_OK;
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "options->trace: '%s' could not be written, and is incomplete",
              path.c_str());
}
