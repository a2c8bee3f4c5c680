//===- Progress.h - What training prints while it runs ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_PROGRESS_H
#define ZERO_EXAMPLES_TRANSFORMER_PROGRESS_H

#include <chrono>
#include <cstdint>

namespace transformer {

/// One line that is overwritten on a terminal; elsewhere, where lines stay, a
/// line every tenth of the steps.
class Progress {
public:
  Progress(int64_t steps, int64_t tokensPerStep);

  /// Steps before |first| were made by another process.
  void begin(int64_t first);
  /// |step| counts from 1.
  void report(int64_t step, double loss, double norm);
  double seconds() const;

private:
  int64_t steps;
  int64_t tokensPerStep;
  int64_t first = 0;
  bool terminal;
  std::chrono::steady_clock::time_point start;
};

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_PROGRESS_H
