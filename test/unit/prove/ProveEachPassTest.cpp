//===- ProveEachPassTest.cpp - The pass that changed a step is named ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/ProveEachPass.h"

#include "dialect/zero/ZeroDialect.h"
#include "test/unit/common/StepText.h"
#include "test/unit/prove/StepTest.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace {

/// Applies steps whatever their gradients are.
struct PoisonPass : PassWrapper<PoisonPass, OperationPass<ModuleOp>> {
  StringRef getArgument() const override { return "test-poison"; }
  void runOnOperation() override {
    for (auto step : getOperation().getOps<zero::StepOp>())
      step.setNonfinite(zero::Nonfinite::apply);
  }
};

struct NothingPass : PassWrapper<NothingPass, OperationPass<ModuleOp>> {
  StringRef getArgument() const override { return "test-nothing"; }
  void runOnOperation() override {}
};

class ProveEachPassTest : public zero::test::StepTest {
protected:
  /// Runs nothing, then poison, then nothing on the step in |text|.
  zero::ProveEachPass::Result run(const std::string &text) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    zero::ProveEachPass::Result result;
    PassManager pm(&context);
    pm.addInstrumentation(
        std::make_unique<zero::ProveEachPass>(nullptr, result));
    pm.addPass(std::make_unique<NothingPass>());
    pm.addPass(std::make_unique<PoisonPass>());
    pm.addPass(std::make_unique<NothingPass>());
    EXPECT_TRUE(module && succeeded(pm.run(*module)));
    return result;
  }
};

TEST_F(ProveEachPassTest, ThePassThatChangedTheStepIsNamed) {
  zero::ProveEachPass::Result result = run(zero::test::StepText().print());
  EXPECT_EQ(result.broken, "test-poison");
  EXPECT_EQ(result.passes, 1u);
  // What the pass behind it finds changed is not its own.
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0], "where a gradient is not finite, the outcome is 0, "
                       "expected 1");
  EXPECT_EQ(errors[1], "pass 'test-poison' changed what the step does");
}

TEST_F(ProveEachPassTest, AStepThatStaysIsTheSame) {
  zero::test::StepText step;
  step.nonfinite = "nonfinite apply";
  zero::ProveEachPass::Result result = run(step.print());
  EXPECT_EQ(result.broken, "");
  EXPECT_EQ(result.passes, 3u);
  EXPECT_TRUE(errors.empty());
}

// Passes take what is no whole step, too.
TEST_F(ProveEachPassTest, WhatCannotBeProvedIsNotCompared) {
  zero::ProveEachPass::Result result = run("module {}");
  EXPECT_EQ(result.passes, 0u);
  EXPECT_TRUE(errors.empty());
}

} // namespace
