//===- ProvedStepTest.cpp - The parts of a proof --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Prove.h"

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"
#include "test/unit/common/StepText.h"
#include "test/unit/prove/StepTest.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace {

class ProvedStepTest : public zero::test::StepTest {
protected:
  ProvedStepTest() {
    module =
        parseSourceString<ModuleOp>(zero::test::StepText().print(), &context);
    zero::LowerOptions options;
    options.stage = 2;
    proved = zero::lowerProved(*module, options, /*reference=*/nullptr);
  }

  OwningOpRef<ModuleOp> module; // scheduled
  std::unique_ptr<zero::ProvedStep> proved;
};

TEST_F(ProvedStepTest, ASoundStepHasBothParts) {
  ASSERT_TRUE(proved);
  EXPECT_TRUE(proved->hasOrder(*module));
  EXPECT_TRUE(proved->isSameButForOrder(*module));
  EXPECT_TRUE(proved->isSameAs(*module));
  EXPECT_TRUE(errors.empty());
}

TEST_F(ProvedStepTest, WithoutWaitsItIsTheSameButForItsOrder) {
  ASSERT_TRUE(proved);
  SmallVector<Operation *> waits;
  module->walk([&](zrt::WaitOp wait) { waits.push_back(wait); });
  ASSERT_FALSE(waits.empty());
  for (Operation *wait : waits)
    wait->erase();
  EXPECT_TRUE(proved->isSameButForOrder(*module));
  EXPECT_TRUE(errors.empty());
  EXPECT_FALSE(proved->hasOrder(*module));
  ASSERT_FALSE(errors.empty());
  EXPECT_NE(errors[0].find("races with"), std::string::npos) << errors[0];
  EXPECT_FALSE(proved->isSameAs(*module));
}

TEST_F(ProvedStepTest, WithoutAnUpdateItIsAnotherStepInOrder) {
  ASSERT_TRUE(proved);
  Operation *last = nullptr; // the last launch updates parameters
  module->walk([&](zrt::LaunchOp launch) { last = launch; });
  ASSERT_TRUE(last);
  last->erase();
  EXPECT_TRUE(proved->hasOrder(*module));
  EXPECT_TRUE(errors.empty());
  EXPECT_FALSE(proved->isSameButForOrder(*module));
  EXPECT_FALSE(errors.empty());
}

} // namespace
