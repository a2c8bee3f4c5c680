//===- NumberMutations.cpp - What is the same but for some numbers --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutations.h"

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace zero;
using namespace zero::test;

/// What is the same in place of a number of |op|, made behind it.
using Remake = std::function<Value(OpBuilder &, Operation *)>;

static void addRemake(Operation *op, unsigned index, StringRef what,
                      std::vector<Mutation> &mutations, Remake remake) {
  mutations.push_back({op->getName().getStringRef().str() + ": " + what.str(),
                       index,
                       [index, remake = std::move(remake)](const Ops &ops) {
                         Operation *op = ops[index];
                         OpBuilder builder(op->getContext());
                         builder.setInsertionPointAfter(op);
                         Operation *next = op->getNextNode();
                         Value made = remake(builder, op);
                         llvm::SmallPtrSet<Operation *, 4> added;
                         for (Operation *each = op->getNextNode(); each != next;
                              each = each->getNextNode())
                           added.insert(each);
                         op->getResult(0).replaceAllUsesExcept(made, added);
                       }});
}

/// Divides by a number and multiplies by it again, in one order or the other.
static void addDivisions(Operation *op, unsigned index,
                         std::vector<Mutation> &mutations) {
  Type type = op->getResult(0).getType();
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (operand.getType() == type &&
        !operand.getDefiningOp<arith::ConstantOp>())
      addRemake(op, index, "times an operand over itself", mutations,
                [i = i](OpBuilder &builder, Operation *op) -> Value {
                  Value by = op->getOperand(i);
                  Value over =
                      builder.create<arith::DivFOp>(op->getLoc(), by, by);
                  return builder.create<arith::MulFOp>(op->getLoc(),
                                                       op->getResult(0), over);
                });
  for (BlockArgument argument : op->getBlock()->getArguments())
    if (argument.getType() == type)
      addRemake(op, index, "times and over an argument", mutations,
                [n = argument.getArgNumber()](OpBuilder &builder,
                                              Operation *op) -> Value {
                  Value by = op->getBlock()->getArgument(n);
                  Value product = builder.create<arith::MulFOp>(
                      op->getLoc(), op->getResult(0), by);
                  return builder.create<arith::DivFOp>(op->getLoc(), product,
                                                       by);
                });
}

/// Adds 0 times a quotient, which is nan where it is infinite.
static void addZeroTimes(Operation *op, unsigned index,
                         std::vector<Mutation> &mutations) {
  addRemake(op, index, "plus 0 times itself", mutations,
            [](OpBuilder &builder, Operation *op) -> Value {
              Value quotient = op->getResult(0);
              Value zero = builder.create<arith::ConstantOp>(
                  op->getLoc(), builder.getFloatAttr(quotient.getType(), 0));
              Value none =
                  builder.create<arith::MulFOp>(op->getLoc(), quotient, zero);
              return builder.create<arith::AddFOp>(op->getLoc(), quotient,
                                                   none);
            });
}

/// Multiplies a sum over elements by a huge number and divides it again before
/// its root is taken. Over the reals this is the sum.
static void addOverflow(math::SqrtOp op, unsigned index,
                        std::vector<Mutation> &mutations) {
  if (!op->getParentOfType<zrt::ScalarsOp>() ||
      !op.getOperand().getDefiningOp<zrt::LoadSlotOp>())
    return;
  mutations.push_back(
      {"math.sqrt: of a sum times and over 1e300", index,
       [index](const Ops &ops) {
         auto op = cast<math::SqrtOp>(ops[index]);
         OpBuilder builder(op);
         Location location = op.getLoc();
         constexpr double kHuge = 1e300;
         Value huge = builder.create<arith::ConstantOp>(
             location, builder.getF64FloatAttr(kHuge));
         Value product =
             builder.create<arith::MulFOp>(location, op.getOperand(), huge);
         op.getOperandMutable().assign(
             builder.create<arith::DivFOp>(location, product, huge)
                 .getResult());
       }});
}

void test::addNumberMutations(ModuleOp module,
                              std::vector<Mutation> &mutations) {
  for (auto [index, op] : llvm::enumerate(getOps(module))) {
    if (isa<arith::MulFOp, arith::DivFOp, math::FmaOp>(op))
      addDivisions(op, index, mutations);
    if (isa<arith::DivFOp>(op))
      addZeroTimes(op, index, mutations);
    if (auto root = dyn_cast<math::SqrtOp>(op))
      addOverflow(root, index, mutations);
  }
}
