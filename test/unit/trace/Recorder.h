//===- Recorder.h - A table of calls that records ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_TRACE_RECORDER_H
#define ZERO_TEST_UNIT_TRACE_RECORDER_H

#include "Trace.h"

#include "zero_rt/library.h"

#include <functional>

namespace zero::test {

/// Stands between a runtime and the steps created from it on this thread: every
/// call of the table is written down, then forwarded to the runtime's own.
class Recorder {
public:
  /// |onCall| is told each of them before it is made.
  explicit Recorder(
      zero_rt_runtime *runtime,
      std::function<void(const std::string &)> onCall = [](const auto &) {});
  ~Recorder();
  Recorder(const Recorder &) = delete;
  Recorder &operator=(const Recorder &) = delete;

  /// Step calls by name, program calls with their operands.
  Trace trace;

private:
  friend struct Rows;
  void note(const std::string &text) {
    trace.push_back(text);
    onCall(text);
  }
  std::function<void(const std::string &)> onCall;
  zero_rt_runtime *runtime;
  const zero_rt_calls *real;
  const zero_rt_library *library = nullptr;
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_TRACE_RECORDER_H
