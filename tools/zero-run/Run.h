//===- Run.h - Steps of one engine, and of one to compare with --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_RUN_H
#define ZERO_TOOLS_ZERO_RUN_RUN_H

#include "tools/driver/Progress.h"
#include "tools/zero-run/GradientFile.h"
#include "tools/zero-run/Inputs.h"
#include "tools/zero-run/Report.h"
#include "tools/zero-run/Sample.h"

namespace zero {

/// Runs steps, compares them with a reference where there is one, and tells a
/// report. What fails has been diagnosed, or is an error of the report.
class Run {
public:
  Run(Report &report, Progress &progress)
      : report(report), progress(progress) {}

  std::unique_ptr<Engine> engine;
  std::unique_ptr<Engine> reference;
  /// The reference, if that has some elements only.
  const SampledReference *sample = nullptr;
  std::vector<ParameterInfo> parameters;
  std::vector<std::string> roles; // of state
  int64_t ranks = 1;
  int64_t steps = 1;
  std::vector<int64_t> backwards; // of step i: [i % size]
  Hints hints = Hints::unknown;
  /// Folders of checkpoints; empty: none. The first step follows the one after
  /// which the loaded checkpoint was saved.
  std::string load, save;
  /// Saves behind so many backward passes of the step behind the last; 0:
  /// between steps.
  int64_t saveWithin = 0;
  bool measures = false;  // before each apply
  bool leavesOut = false; // gradients of optional parameters, at random
  std::vector<InputInfo> inputs;
  /// What every rank passes; empty: 0.01, or whole numbers where each rank has
  /// a share of its own.
  std::vector<double> given;
  std::optional<Inputs> numbers;
  /// Gradients that are not made from |numbers|.
  std::optional<GradientFile> file;

  mlir::LogicalResult run();

private:
  mlir::LogicalResult bind();
  /// The steps up to the end, with checkpoints.
  mlir::LogicalResult runSteps();
  mlir::LogicalResult saveCheckpoint(int64_t number);
  /// Success where the run can go on.
  mlir::LogicalResult runStep(int64_t index);
  std::vector<RankInputs> deliver(int64_t index);
  std::vector<double> getInputs(int64_t index, int64_t rank) const;
  std::vector<MissingGradient> findMissing(llvm::ArrayRef<RankInputs> ranks);
  mlir::LogicalResult compareStep(const StepReport &step,
                                  llvm::ArrayRef<RankInputs> delivered);
  mlir::LogicalResult compareState(int64_t index);
  void compareReported(const StepReport &step, const StepResult &expected);
  void record(llvm::StringRef role, const ParameterInfo &info, int64_t step,
              const Difference &difference);
  /// A hash over the bits of all parameters and state, wherever they are kept.
  mlir::LogicalResult hashState();

  /// Says that |what| of step |index| is next, of the four parts of each step.
  void tell(llvm::StringRef what, int64_t index, int64_t part);
  std::vector<Number> pick(const ParameterInfo &info, std::vector<Number> all) {
    return sample ? sample->pick(info, std::move(all)) : all;
  }

  Report &report;
  Progress &progress;
  int64_t first = 0; // step
};

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_RUN_H
