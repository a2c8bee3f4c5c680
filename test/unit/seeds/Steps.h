//===- Steps.h - Steps that run one way or another --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_SEEDS_STEPS_H
#define ZERO_TEST_UNIT_SEEDS_STEPS_H

#include "test/unit/common/StepText.h"
#include "tools/zero-run/Engine.h"
#include "tools/zero-run/Groups.h"

#include <gtest/gtest.h>

namespace zero::test {

/// What runs a step: the interpreter at the logical phase in f64, the
/// interpreter at the scheduled phase, or compiled code.
enum class How { logical, scheduled, compiled };

/// Which backward passes are begun as the last: none, the last, or each (but
/// only the last where ranks make different numbers of them).
enum class Hinted { none, last, each };

/// How a step is lowered and run.
struct Way {
  How how;
  int stage = 0;
  /// More options of --zero-lower.
  std::string pipeline = "";
  /// By default small enough for several buckets.
  int64_t bucketBytes = 256;
  Hinted hinted = Hinted::none;
};
std::string nameOf(const testing::TestParamInfo<Way> &info);

/// The logical step, and stages 0 to 3 interpreted and compiled, with and
/// without hints where these make a difference, and at stage 1 with an
/// accumulator apart where the step allows it. At stage 3 parameters that all
/// ranks hold are in units of two, and a step without such is one of stage 2.
std::vector<Way> getWays();

/// From now on compiled steps for as many ranks as |processes| has run on
/// these. Each process makes the same tests.
void setProcesses(const Processes *processes);
/// The number of steps that have run on processes.
int64_t getNumStepsOnProcesses();

/// The gradients of one backward pass on one rank, by the name of the
/// parameter.
using Backward = llvm::StringMap<std::vector<double>>;
/// By rank and backward pass.
using Window = std::vector<std::vector<Backward>>;

/// A step that runs one way.
class Step {
public:
  using Mutation = llvm::function_ref<void(mlir::ModuleOp)>;

  /// |mutate| may damage the lowered module before it runs.
  Step(const StepText &text, const Way &way, Mutation mutate = nullptr)
      : Step(text.print(), way, mutate) {}
  /// The same of a module with one logical step.
  Step(const std::string &source, const Way &way, Mutation mutate = nullptr);
  ~Step();

  /// One step with learning rate |rate|, and |tokens| by rank where it has any.
  mlir::FailureOr<StepResult> apply(double rate, const Window &window,
                                    const std::vector<double> &tokens = {});
  void bind(const std::string &name, std::vector<double> values);
  /// On rank 0, after a check that all ranks have the same.
  std::vector<double> get(const std::string &name);
  std::vector<double> getOn(int64_t rank, const std::string &name);
  /// With the rounding bound of each element, which is 0 but for How::logical.
  std::vector<Number> getNumbers(const std::string &name);
  /// Joined over the ranks that own a slice.
  std::vector<double> getState(const std::string &role,
                               const std::string &name);
  Engine &getEngine() { return *engine; }
  mlir::MLIRContext *getContext();
  const ParameterInfo &find(const std::string &name) const;

private:
  struct Context;
  std::unique_ptr<Context> context;
  std::unique_ptr<Engine> engine;
  std::vector<ParameterInfo> parameters;
  int64_t ranks;
  Hinted hinted;
  int64_t numApplied = 0;
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_SEEDS_STEPS_H
