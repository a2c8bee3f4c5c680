//===- OpMutations.cpp - Ops that are lost, doubled or moved --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutations.h"

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace zero;
using namespace zero::test;

Ops test::getOps(ModuleOp module) {
  Ops ops;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  return ops;
}

static std::string nameOf(Operation *op) {
  return op->getName().getStringRef().str();
}

/// Takes |op| out: users take the first operand of their type in its place.
static void eraseOp(Operation *op) {
  for (Value result : op->getResults()) {
    for (Value operand : op->getOperands())
      if (operand.getType() == result.getType()) {
        result.replaceAllUsesWith(operand);
        break;
      }
  }
  if (op->use_empty())
    op->erase();
}

static bool canErase(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>() || isa<ModuleOp>(op))
    return false;
  return llvm::all_of(op->getResults(), [&](Value result) {
    return result.use_empty() ||
           llvm::is_contained(op->getOperandTypes(), result.getType());
  });
}

/// What a body computes instead.
template <typename From, typename To>
static void addReplacement(Operation *op, unsigned index, StringRef what,
                           std::vector<Mutation> &mutations) {
  if (!isa<From>(op))
    return;
  mutations.push_back(
      {nameOf(op) + ": " + what.str(), index, [index](const Ops &ops) {
         Operation *op = ops[index];
         OpBuilder builder(op);
         Value made = builder.create<To>(op->getLoc(), op->getOperand(0),
                                         op->getOperand(1));
         op->replaceAllUsesWith(ValueRange(made));
         op->erase();
       }});
}

static void addReroutes(Operation *op, unsigned index,
                        const llvm::DenseMap<Operation *, unsigned> &indices,
                        std::vector<Mutation> &mutations) {
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    // Values of its type that are there before: the two nearest, and arguments.
    int found = 0;
    for (Operation *other = op->getPrevNode(); other && found < 2;
         other = other->getPrevNode())
      for (auto [j, result] : llvm::enumerate(other->getResults())) {
        if (result.getType() != operand.getType() || result == operand)
          continue;
        ++found;
        unsigned from = indices.lookup(other);
        mutations.push_back({nameOf(op) + ": operand from elsewhere", index,
                             [index, from, i = i, j = j](const Ops &ops) {
                               ops[index]->setOperand(i,
                                                      ops[from]->getResult(j));
                             }});
      }
    for (BlockArgument argument : op->getBlock()->getArguments()) {
      if (argument.getType() != operand.getType() || argument == operand ||
          ++found > 3)
        continue;
      mutations.push_back(
          {nameOf(op) + ": operand from an argument", index,
           [index, i = i, n = argument.getArgNumber()](const Ops &ops) {
             Operation *op = ops[index];
             op->setOperand(i, op->getBlock()->getArgument(n));
           }});
    }
    if (i > 0 && op->getOperand(i - 1).getType() == operand.getType() &&
        op->getOperand(i - 1) != operand)
      mutations.push_back({nameOf(op) + ": operands swapped", index,
                           [index, i = i](const Ops &ops) {
                             Operation *op = ops[index];
                             Value a = op->getOperand(i - 1);
                             op->setOperand(i - 1, op->getOperand(i));
                             op->setOperand(i, a);
                           }});
  }
}

void test::addOpMutations(ModuleOp module, std::vector<Mutation> &mutations) {
  Ops all = getOps(module);
  llvm::DenseMap<Operation *, unsigned> indices;
  for (auto [i, op] : llvm::enumerate(all))
    indices[op] = i;
  for (auto [position, op] : llvm::enumerate(all)) {
    unsigned index = position;
    if (isa<ModuleOp>(op))
      continue;
    if (canErase(op))
      mutations.push_back({nameOf(op) + ": lost", index,
                           [index](const Ops &ops) { eraseOp(ops[index]); }});
    addReplacement<arith::AddFOp, arith::SubFOp>(op, index, "subf instead",
                                                 mutations);
    addReplacement<arith::MulFOp, arith::AddFOp>(op, index, "addf instead",
                                                 mutations);
    addReplacement<arith::DivFOp, arith::MulFOp>(op, index, "mulf instead",
                                                 mutations);
    addReplacement<arith::SubFOp, arith::AddFOp>(op, index, "addf instead",
                                                 mutations);
    addReroutes(op, index, indices, mutations);
    // Callers know activations by their numbers.
    if (isa<ActivationOp>(op) && isa<ActivationOp>(op->getNextNode()))
      mutations.push_back(
          {nameOf(op) + ": after the next one", index, [index](const Ops &ops) {
             ops[index]->moveAfter(ops[index]->getNextNode());
           }});
    bool isCall = isa<zrt::HandlerOp>(op->getParentOp());
    if (!isCall)
      continue;
    mutations.push_back(
        {nameOf(op) + ": twice", index, [index](const Ops &ops) {
           Operation *op = ops[index];
           OpBuilder builder(op->getContext());
           builder.setInsertionPointAfter(op);
           builder.clone(*op);
         }});
    if (Operation *next = op->getNextNode()) {
      unsigned other = indices.lookup(next);
      mutations.push_back({nameOf(op) + ": after the next call", index,
                           [index, other](const Ops &ops) {
                             ops[index]->moveAfter(ops[other]);
                           }});
    }
  }
}
