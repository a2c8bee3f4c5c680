//===- Bench.h - Rows of a benchmark and how they are measured --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_BENCH_BENCH_H
#define ZERO_TOOLS_ZERO_BENCH_BENCH_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zero::bench {

/// One line of the table. |value| is what the goal is about.
struct Row {
  std::string name;
  double timeMs = 0;
  std::string reference; // what it is compared with; empty: nothing
  double referenceMs = 0;
  std::string unit; // of |value|: "time / reference", "speed-up", "s", ...
  double value = 0;
  enum class Goal { none, atMost, atLeast } goal = Goal::none;
  double limit = 0;

  bool isMet() const {
    return goal == Goal::none ||
           (goal == Goal::atMost ? value <= limit : value >= limit);
  }
};

struct Options {
  int64_t elements = 0;
  int rounds = 0;
  /// Bytes of the buffers that collectives run on.
  int64_t collectiveBytes = 0;
  std::vector<int64_t> compileParameters;
};

/// One group of rows: |message| says why it could not run.
using Group = bool (*)(const Options &options, std::vector<Row> &rows,
                       std::string &message);
bool runKernelRows(const Options &options, std::vector<Row> &rows,
                   std::string &message);
bool runDeliverRows(const Options &options, std::vector<Row> &rows,
                    std::string &message);
bool runStepRows(const Options &options, std::vector<Row> &rows,
                 std::string &message);
bool runCollectiveRows(const Options &options, std::vector<Row> &rows,
                       std::string &message);
bool runTraceRows(const Options &options, std::vector<Row> &rows,
                  std::string &message);
bool runCompileRows(const Options &options, std::vector<Row> &rows,
                    std::string &message);
bool runProveRows(const Options &options, std::vector<Row> &rows,
                  std::string &message);

/// Milliseconds that |work| takes.
double measure(llvm::function_ref<void()> work);
double median(std::vector<double> values);

/// A candidate and its reference, timed in turns. Google Benchmark runs one to
/// the end before it begins the other, so a machine that changes its speed in
/// between changes their ratio.
struct Pair {
  double timeMs;
  double referenceMs;
  /// The median of the ratios of neighbours.
  double ratio;
};
/// |prepare| runs before each, and is not timed.
Pair interleave(int rounds, llvm::function_ref<void()> prepare,
                llvm::function_ref<void(int round)> work,
                llvm::function_ref<void()> reference);

/// |count| elements of T in pages of their own, large ones where there are
/// some.
template <typename T> class Pages {
public:
  explicit Pages(int64_t count);
  ~Pages();
  Pages(const Pages &) = delete;
  Pages &operator=(const Pages &) = delete;
  T *data() { return elements; }
  T &operator[](int64_t i) { return elements[i]; }
  int64_t size() const { return count; }

private:
  T *elements;
  int64_t count;
};

} // namespace zero::bench

#endif // ZERO_TOOLS_ZERO_BENCH_BENCH_H
