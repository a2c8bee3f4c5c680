//===- Progress.h - How far a tool is, and what Ctrl-C leaves ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_DRIVER_PROGRESS_H
#define ZERO_TOOLS_DRIVER_PROGRESS_H

#include "llvm/ADT/Twine.h"

#include <chrono>
#include <mutex>
#include <thread>

namespace zero {

/// Prints one line on stderr about work that takes more than two seconds, if
/// that is a terminal, and overwrites it. Ctrl-C prints what was done and ends
/// the process with 130. There is one at a time.
class Progress {
public:
  /// |tool| begins what is printed for Ctrl-C.
  explicit Progress(llvm::StringRef tool);
  ~Progress();

  /// |done| of |total| equal parts of the work are done; |what| is next.
  void update(const llvm::Twine &what, int64_t done, int64_t total);
  /// What is to be said of a part of the work that was interrupted.
  void setSummary(const llvm::Twine &text);
  /// Clears the line, so that other text can be printed.
  void clear();

private:
  using Clock = std::chrono::steady_clock;

  void watch();
  void print();
  void interrupt();
  void clearLine();

  std::string tool;
  bool isTerminal;
  Clock::time_point start = Clock::now();
  std::mutex mutex; // of what follows
  std::string what;
  std::string summary;
  int64_t done = 0;
  int64_t total = 0;
  Clock::time_point updated = start;
  bool isShown = false;
  std::thread watcher;
};

} // namespace zero

#endif // ZERO_TOOLS_DRIVER_PROGRESS_H
