//===- trace.h - What one rank does, call by call ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_TRACE_H
#define ZERO_RT_CORE_TRACE_H

#include "zero_rt/library.h"

#include <memory>
#include <mutex>
#include <string>

namespace zero_rt {

/// A call, from its begin to its return.
struct Span {
  const char *call;
  const char *label = ""; // the name of a buffer or of a parameter
  int32_t stream = ZERO_RT_STREAM_CALLER;
  int64_t begin = 0, end = 0; // Trace::now()
  zero_rt_status status = ZERO_RT_OK;
  // What the call adds to the counters of the rank.
  int64_t bytesSent = 0, bytesCopied = 0, launches = 0;
};

/// Writes FOLDER/rank-N.json in the format of Chrome's tracing, which Perfetto
/// reads: one process for each rank, one thread for each stream. Times are
/// microseconds since the trace began, which the file tells, too, in
/// nanoseconds since 1970. On a GPU they are those of the calls, which queue
/// the work.
class Trace {
public:
  /// Creates the folder and the file, unless they exist. The file keeps what it
  /// has: it may be that of another runtime.
  static zero_rt_status prepare(const char *folder, int32_t rank);
  /// Creates the folder, unless it exists, and the file.
  static zero_rt_status create(const char *folder, int32_t rank, int32_t ranks,
                               std::unique_ptr<Trace> &out);
  ~Trace();

  /// Nanoseconds, of a clock that is never set back.
  static int64_t now();
  void add(const Span &span);
  /// Writes the rest. Nothing can be added afterwards.
  zero_rt_status finish();

private:
  class Line;

  Trace(std::string path, int file, int32_t rank);
  void name(const char *what, int32_t stream, const std::string &text);
  /// Behind a line: writes what is unwritten if that is much.
  void end();
  void flush();

  std::string path;
  int file; // -1 once it is finished
  int32_t rank;
  int64_t start = now();
  /// What is not written yet. A process that forks does not write it twice, as
  /// it would with a stream of C.
  std::string unwritten;
  bool hasFailed = false;
  std::mutex mutex; // calls of one rank on two threads at once are errors
};

/// Calls that add themselves to the trace of their rank.
extern const zero_rt_calls tracedCallTable;

} // namespace zero_rt

#endif // ZERO_RT_CORE_TRACE_H
