//===- SymbolsTest.cpp - Symbols are renamed wherever they are named ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Prove.h"
#include "test/unit/common/StepText.h"
#include "tools/driver/Driver.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace {

/// Gives each symbol of |module| another name.
LogicalResult renameAll(ModuleOp module) {
  SymbolTable table(module);
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (auto name = SymbolTable::getSymbolName(&op))
      if (failed(table.rename(&op, "new_" + name.getValue().str())))
        return failure();
  return success();
}

} // namespace

// No type and no string names one: a renamed step verifies and is the same.
TEST(Symbols, OfAStepCanAllBeRenamed) {
  DialectRegistry registry;
  zero::registerDriverDialects(registry);
  MLIRContext context(registry);
  zero::test::StepText step;
  step.arrival = "f16";
  step.lossScale = zero::test::getLossScale("torch");
  step.schedule = zero::test::getSchedule("linear");
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(step.print(), &context);
  ASSERT_TRUE(module);
  ASSERT_TRUE(succeeded(renameAll(*module)));
  EXPECT_TRUE(succeeded(verify(*module)));
  EXPECT_EQ(module->lookupSymbol("loss_scale"), nullptr);
  ASSERT_NE(module->lookupSymbol("new_loss_scale"), nullptr);
  zero::ProvedStep proved(*module);
  ASSERT_TRUE(proved.isProved());
  EXPECT_EQ(proved.getSummary().lossScale, "new_loss_scale");
}
