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

namespace {
/// The best of three, in seconds.
struct Times {
  double compile = 1e9; // from text to an open library
  double validate = 1e9;
};
} // namespace

static bool timeCompilation(int64_t parameters, Times &times,
                            std::string &message) {
  std::vector<int64_t> sizes = getSizes(parameters);
  for (int round = 0; round < 3; ++round) {
    // The runtime does not load an equal library again.
    sizes.front() += round;
    std::string text = getStepText(sizes, "bf16");
    auto context = createContext();
    OwningOpRef<ModuleOp> module;
    FailureOr<CompiledStep> step = failure();
    bool isOpen = false;
    double time = measure([&] {
      module = lowerStep(*context, text, /*stage=*/2);
      if (!module)
        return;
      step = compileStep(*module, {});
      isOpen = succeeded(step) && openStep(*step, message);
    });
    double validation = 0;
    if (!isOpen || !validateStep(*step, validation, message))
      return false;
    times.compile = std::min(times.compile, time / 1000);
    times.validate = std::min(times.validate, validation / 1000);
  }
  return true;
}

bool zero::bench::runCompileRows(const Options &options, std::vector<Row> &rows,
                                 std::string &message) {
  const double limits[] = {0.5, 2, 8};
  double last = 0, before = 0;
  std::vector<Row> validations;
  for (size_t i = 0; i < options.compileParameters.size(); ++i) {
    int64_t parameters = options.compileParameters[i];
    Times times;
    if (!timeCompilation(parameters, times, message))
      return false;
    before = last;
    last = times.compile;
    Row row;
    row.name = "compile " + std::to_string(parameters) + " parameters";
    row.timeMs = last * 1000;
    row.unit = "s";
    row.value = last;
    row.goal = Row::Goal::atMost;
    row.limit = limits[i];
    rows.push_back(row);
    Row validation;
    validation.name = "validate " + std::to_string(parameters);
    validation.timeMs = times.validate * 1000;
    validation.reference = "a fifth of compile, or 150 ms";
    validation.referenceMs = std::max(times.compile * 200, 150.0);
    validation.unit = "time / reference";
    validation.value = validation.timeMs / validation.referenceMs;
    validation.goal = Row::Goal::atMost;
    validation.limit = 1;
    validations.push_back(validation);
  }
  Row row;
  row.name = "compile, the last two";
  row.unit = "ratio";
  row.value = last / before;
  row.goal = Row::Goal::atMost;
  row.limit = 5.5;
  rows.push_back(row);
  rows.insert(rows.end(), validations.begin(), validations.end());
  return true;
}
