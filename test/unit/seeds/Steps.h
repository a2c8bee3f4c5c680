//===- Steps.h - Small steps with exact answers -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_SEEDS_STEPS_H
#define ZERO_TEST_UNIT_SEEDS_STEPS_H

#include "tools/zero-run/Engine.h"

#include <gtest/gtest.h>

namespace zero::test {

/// What runs a step: the interpreter at the logical phase in f64, the
/// interpreter at the scheduled phase, or compiled code.
enum class How { logical, scheduled, compiled };

/// (how, ZeRO stage)
using Way = std::tuple<How, int>;
std::string nameOf(const testing::TestParamInfo<Way> &info);

/// One parameter @w of |elements| f32, or several, under plain SGD.
struct StepOptions {
  int64_t ranks = 2;
  std::string weight = "dp : -1";
  std::string arrives = "";
  std::string gradientType = "bf16";
  std::string accumulatorType = "f32";
  /// Name, elements, and "" or "optional".
  std::vector<std::tuple<std::string, int64_t, std::string>> parameters = {
      {"w", 1, ""}};
  std::string optimizer = "sgd"; // or adamw
};

/// A step that runs one way.
class Step {
public:
  Step(const StepOptions &options, Way way);
  ~Step();

  /// One step with learning rate |rate|; contributions[r][k] are the gradients
  /// of rank r in backward k.
  mlir::FailureOr<StepResult>
  apply(double rate,
        std::vector<std::vector<llvm::StringMap<std::vector<double>>>>
            contributions);
  void bind(const std::string &name, std::vector<double> values);
  /// On rank |rank|, after a check that all ranks have the same.
  std::vector<double> get(const std::string &name);
  std::vector<double> getState(const std::string &role,
                               const std::string &name);
  Engine &getEngine() { return *engine; }

private:
  const ParameterInfo &find(const std::string &name);

  struct Context;
  std::unique_ptr<Context> context;
  std::unique_ptr<Engine> engine;
  std::vector<ParameterInfo> parameters;
  int64_t ranks;
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_SEEDS_STEPS_H
