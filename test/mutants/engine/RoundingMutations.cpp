//===- RoundingMutations.cpp - Less precise, and other thresholds ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutations.h"

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace zero;
using namespace zero::test;

/// Types that |type| may be rounded to, by name.
static SmallVector<std::pair<std::string, FloatType>> getNarrower(Type type) {
  SmallVector<std::pair<std::string, FloatType>> narrower;
  auto wide = dyn_cast<FloatType>(type);
  MLIRContext *context = type.getContext();
  for (auto narrow : std::initializer_list<FloatType>{
           BFloat16Type::get(context), Float16Type::get(context),
           Float32Type::get(context)})
    if (wide && narrow.getWidth() < wide.getWidth()) {
      std::string name;
      llvm::raw_string_ostream(name) << narrow;
      narrower.push_back({name, narrow});
    }
  return narrower;
}

/// Has what uses |whole| use it rounded to |narrow|, and back.
static void round(OpBuilder &builder, Value whole, Type narrow) {
  Location location = builder.getUnknownLoc();
  auto rounded = builder.create<arith::TruncFOp>(location, narrow, whole);
  auto back = builder.create<arith::ExtFOp>(location, whole.getType(),
                                            rounded.getResult());
  whole.replaceAllUsesExcept(back, rounded);
}

/// Has what uses |whole| use it after a number was added to it and taken away
/// again, beside which all its digits are lost.
static void absorb(OpBuilder &builder, Value whole) {
  Location location = builder.getUnknownLoc();
  auto type = cast<FloatType>(whole.getType());
  APFloat number(1.0);
  bool isInexact = false;
  number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                 &isInexact);
  number = scalbn(number, 40 + int(type.getFPMantissaWidth()),
                  APFloat::rmNearestTiesToEven);
  Value large =
      builder.create<arith::ConstantOp>(location, FloatAttr::get(type, number));
  auto beside = builder.create<arith::AddFOp>(location, whole, large);
  auto rest = builder.create<arith::SubFOp>(location, beside, large);
  whole.replaceAllUsesExcept(rest, beside);
}

/// Loses the digits of the numbers of |op|.
static void addAbsorption(Operation *op, unsigned index,
                          std::vector<Mutation> &mutations) {
  if (op->getNumResults() != 1)
    return;
  Type type = op->getResult(0).getType();
  // Nothing is left of a number of f16 beside one that f16 does not hold.
  if (type.isF32() || type.isF64())
    mutations.push_back({op->getName().getStringRef().str() + ": absorbed",
                         index, [index](const Ops &ops) {
                           OpBuilder builder(ops[index]->getContext());
                           builder.setInsertionPointAfter(ops[index]);
                           absorb(builder, ops[index]->getResult(0));
                         }});
}

/// Rounds the numbers of |op| to each narrower type.
static void addRoundings(Operation *op, unsigned index,
                         std::vector<Mutation> &mutations) {
  if (op->getNumResults() != 1)
    return;
  for (auto &[name, narrow] : getNarrower(op->getResult(0).getType()))
    mutations.push_back(
        {op->getName().getStringRef().str() + ": rounded to " + name, index,
         [index = index, narrow = narrow](const Ops &ops) {
           OpBuilder builder(ops[index]->getContext());
           builder.setInsertionPointAfter(ops[index]);
           round(builder, ops[index]->getResult(0), narrow);
         }});
}

/// Rounds what a kernel is given to each narrower type.
static void addArgumentRoundings(zrt::KernelOp kernel, unsigned index,
                                 std::vector<Mutation> &mutations) {
  for (BlockArgument argument : kernel.getBody().getArguments())
    for (auto &[name, narrow] : getNarrower(argument.getType()))
      mutations.push_back({"zrt.kernel argument: rounded to " + name, index,
                           [index = index, number = argument.getArgNumber(),
                            narrow = narrow](const Ops &ops) {
                             Block &body = ops[index]->getRegion(0).front();
                             OpBuilder builder = OpBuilder::atBlockBegin(&body);
                             round(builder, body.getArgument(number), narrow);
                           }});
}

/// Whether |op| is the test of a sum for nan and inf: x - x != 0.
static bool isFiniteTest(arith::CmpFOp op) {
  auto difference = op.getLhs().getDefiningOp<arith::SubFOp>();
  return op->getParentOfType<zrt::ScalarsOp>() && difference &&
         difference.getLhs() == difference.getRhs();
}

/// Has a finite sum fail the test |op| where it is beyond a bound, or has one
/// that is not finite pass the test where it is not beyond the bound.
static void addThresholds(arith::CmpFOp op, unsigned index,
                          std::vector<Mutation> &mutations) {
  if (!isFiniteTest(op))
    return;
  for (auto [name, bound] : std::initializer_list<std::pair<StringRef, double>>{
           {"1", 1},
           {"2^100", 0x1p100},
           {"the largest f32", std::numeric_limits<float>::max()}})
    for (bool isEither : {false, true})
      mutations.push_back(
          {"arith.cmpf: " + std::string(isEither ? "or" : "and") +
               " a sum beyond " + name.str(),
           index, [index = index, bound = bound, isEither](const Ops &ops) {
             auto test = cast<arith::CmpFOp>(ops[index]);
             OpBuilder builder(test.getContext());
             builder.setInsertionPointAfter(test);
             Location location = test.getLoc();
             Value sum = test.getLhs().getDefiningOp<arith::SubFOp>().getLhs();
             Value limit = builder.create<arith::ConstantOp>(
                 location, builder.getF64FloatAttr(bound));
             Value beyond = builder.create<arith::CmpFOp>(
                 location, arith::CmpFPredicate::OGT, sum, limit);
             Operation *both =
                 isEither
                     ? builder.create<arith::OrIOp>(location, test, beyond)
                     : builder.create<arith::AndIOp>(location, test, beyond);
             test.getResult().replaceAllUsesExcept(both->getResult(0), both);
           }});
}

/// Whether |op| compares sums over ranks of counts: whether ranks made unequal
/// numbers of backward passes.
static bool isCountTest(arith::CmpFOp op) {
  return op->getParentOfType<zrt::ScalarsOp>() &&
         op.getPredicate() == arith::CmpFPredicate::UNE &&
         op.getLhs().getDefiningOp<arith::MulFOp>() &&
         op.getRhs().getDefiningOp<arith::MulFOp>();
}

/// Has the test |op| depend on arithmetic that rounds, though over the reals it
/// is the same, or on one count.
static void addInexactTests(arith::CmpFOp op, unsigned index,
                            std::vector<Mutation> &mutations) {
  using Make = std::function<Value(OpBuilder &, arith::CmpFOp)>;
  auto add = [&](StringRef what, Make make) {
    mutations.push_back(
        {"arith.cmpf: or " + what.str(), index,
         [index = index, make = std::move(make)](const Ops &ops) {
           auto test = cast<arith::CmpFOp>(ops[index]);
           OpBuilder builder(test.getContext());
           builder.setInsertionPointAfter(test);
           Value other = make(builder, test);
           auto either =
               builder.create<arith::OrIOp>(test.getLoc(), test, other);
           test.getResult().replaceAllUsesExcept(either, either);
         }});
  };
  auto constant = [](OpBuilder &builder, arith::CmpFOp test, double value) {
    return builder.create<arith::ConstantOp>(test.getLoc(),
                                             builder.getF64FloatAttr(value));
  };
  if (isFiniteTest(op))
    add("a sum that absorbs a number",
        [=](OpBuilder &builder, arith::CmpFOp test) -> Value {
          Location location = test.getLoc();
          Value sum = test.getLhs().getDefiningOp<arith::SubFOp>().getLhs();
          Value number = constant(builder, test, 0.1);
          Value more = builder.create<arith::AddFOp>(location, sum, number);
          Value less = builder.create<arith::SubFOp>(location, more, sum);
          return builder.create<arith::CmpFOp>(
              location, arith::CmpFPredicate::UNE, less, number);
        });
  if (!isCountTest(op))
    return;
  add("a count that is divided and multiplied",
      [=](OpBuilder &builder, arith::CmpFOp test) -> Value {
        // Of one backward pass on each rank, the quotient is rounded.
        Location location = test.getLoc();
        Value sum = test.getRhs();
        Value by = constant(builder, test, 49);
        Value one = builder.create<arith::DivFOp>(location, sum, sum);
        Value part = builder.create<arith::DivFOp>(location, one, by);
        Value again = builder.create<arith::MulFOp>(location, part, by);
        return builder.create<arith::CmpFOp>(
            location, arith::CmpFPredicate::UNE, again, one);
      });
  add("two backward passes on each rank",
      [=](OpBuilder &builder, arith::CmpFOp test) -> Value {
        double ranks = 1;
        for (Value factor : test.getLhs().getDefiningOp()->getOperands())
          if (auto number = factor.getDefiningOp<arith::ConstantOp>())
            ranks = cast<FloatAttr>(number.getValue()).getValueAsDouble();
        return builder.create<arith::CmpFOp>(
            test.getLoc(), arith::CmpFPredicate::OEQ, test.getRhs(),
            constant(builder, test, 4 * ranks * ranks));
      });
}

/// Whether |scalars|, which may be null, copies numbers and does nothing else.
/// Others test sums for nan, where lost digits do no harm.
static bool isOfCopies(zrt::ScalarsOp scalars) {
  return scalars && llvm::all_of(scalars.getBody().front(), [](Operation &op) {
           return isa<zrt::LoadSlotOp, zrt::StoreSlotOp, zrt::YieldOp>(op);
         });
}

void test::addRoundingMutations(ModuleOp module,
                                std::vector<Mutation> &mutations) {
  for (auto [index, op] : llvm::enumerate(getOps(module))) {
    bool isOfElements = op->getParentOfType<zrt::KernelOp>() ||
                        op->getParentOfType<OptimizerOp>();
    if (isOfElements || isOfCopies(op->getParentOfType<zrt::ScalarsOp>()))
      addAbsorption(op, index, mutations);
    // Scalar programs hold f64 only, and the verifier refuses another type.
    if (isOfElements)
      addRoundings(op, index, mutations);
    if (auto kernel = dyn_cast<zrt::KernelOp>(op))
      addArgumentRoundings(kernel, index, mutations);
    if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
      addThresholds(compare, index, mutations);
      addInexactTests(compare, index, mutations);
    }
  }
}
