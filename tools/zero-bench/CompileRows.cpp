//===- CompileRows.cpp - How long steps take to compile -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-bench/Bench.h"
#include "tools/zero-bench/Programs.h"

#include <algorithm>

using namespace mlir;
using namespace zero;
using namespace zero::bench;

/// From text to an open library, in seconds; the best of three.
static bool timeCompilation(int64_t parameters, double &seconds,
                            std::string &message) {
  std::vector<int64_t> sizes = getSizes(parameters);
  seconds = 1e9;
  for (int round = 0; round < 3; ++round) {
    // The runtime does not load an equal library again.
    sizes.front() += round;
    std::string text = getStepText(sizes, "bf16");
    bool ok = false;
    double time = measure([&] {
      auto context = createContext();
      OwningOpRef<ModuleOp> module = lowerStep(*context, text, /*stage=*/2);
      if (!module)
        return;
      FailureOr<CompiledStep> step = compileStep(*module, {});
      ok = succeeded(step) && openStep(*step, message);
    });
    if (!ok)
      return false;
    seconds = std::min(seconds, time / 1000);
  }
  return true;
}

bool zero::bench::runCompileRows(const Options &options, std::vector<Row> &rows,
                                 std::string &message) {
  const double limits[] = {0.5, 2, 8};
  double last = 0, before = 0;
  for (size_t i = 0; i < options.compileParameters.size(); ++i) {
    int64_t parameters = options.compileParameters[i];
    before = last;
    if (!timeCompilation(parameters, last, message))
      return false;
    Row row;
    row.name = "compile " + std::to_string(parameters) + " parameters";
    row.timeMs = last * 1000;
    row.unit = "s";
    row.value = last;
    row.goal = Row::Goal::atMost;
    row.limit = limits[i];
    rows.push_back(row);
  }
  Row row;
  row.name = "compile, the last two";
  row.unit = "ratio";
  row.value = last / before;
  row.goal = Row::Goal::atMost;
  row.limit = 5.5;
  rows.push_back(row);
  return true;
}
