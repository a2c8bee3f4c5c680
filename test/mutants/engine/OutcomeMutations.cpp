//===- OutcomeMutations.cpp - Numbers that depend on the outcome ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A scalar slot gets another number where the step is not applied. An applied
// step is the same, so only what such a step reports or keeps differs.
//
//===----------------------------------------------------------------------===//

#include "test/mutants/engine/Mutations.h"

#include "dialect/zero/Outcome.h"
#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace zero;
using namespace zero::test;

/// The outcome that the block of |op| computes before |op|; null: none.
static Value findOutcome(zrt::StoreSlotOp op) {
  auto program = op->getParentOfType<zrt::ProgramOp>();
  FlatSymbolRefAttr slots;
  program.walk([&](zrt::CommitOp commit) { slots = commit.getOutcomeAttr(); });
  for (auto store : op->getBlock()->getOps<zrt::StoreSlotOp>())
    if (Operation *made = store.getValue().getDefiningOp();
        store.getSlotsAttr() == slots && store != op && made &&
        made->isBeforeInBlock(op))
      return store.getValue();
  return nullptr;
}

/// Stores 0 where the outcome compares with "skipped" as |predicate| says.
static void addZero(unsigned index, StringRef where,
                    arith::CmpFPredicate predicate,
                    std::vector<Mutation> &mutations) {
  mutations.push_back(
      {"zrt.store_slot: 0 where the step is " + where.str(), index,
       [index, predicate](const Ops &ops) {
         auto op = cast<zrt::StoreSlotOp>(ops[index]);
         OpBuilder builder(op);
         auto constant = [&](double value) -> Value {
           return builder.create<arith::ConstantOp>(
               op.getLoc(), builder.getF64FloatAttr(value));
         };
         Value condition = builder.create<arith::CmpFOp>(
             op.getLoc(), predicate, findOutcome(op),
             constant(double(Outcome::skipped_nonfinite)));
         op.getValueMutable().assign(builder.create<arith::SelectOp>(
             op.getLoc(), condition, constant(0), op.getValue()));
       }});
}

void test::addOutcomeMutations(ModuleOp module,
                               std::vector<Mutation> &mutations) {
  for (auto [index, op] : llvm::enumerate(getOps(module))) {
    auto store = dyn_cast<zrt::StoreSlotOp>(op);
    if (!store || !findOutcome(store))
      continue;
    addZero(index, "skipped", arith::CmpFPredicate::OEQ, mutations);
    addZero(index, "refused", arith::CmpFPredicate::OGT, mutations);
  }
}
