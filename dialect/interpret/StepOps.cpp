//===- StepOps.cpp - Arithmetic on values of a step -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/StepInterpreter.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace zero;

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Number StepInterpreter::evaluateMonomial(ArrayRef<ScaleFactor> monomial,
                                         int sign, const Symbols &symbols) {
  // One division at the end: products of small integers are exact.
  Number numerator{1, 0};
  Number denominator{1, 0};
  for (const ScaleFactor &factor : monomial) {
    StringRef symbol = factor.symbol.getValue();
    Number base = symbol == kTokens         ? symbols.tokens
                  : symbol == kAccumulation ? symbols.accumulation
                  : symbol == kLossScale
                      ? symbols.lossScale
                      : Number{double(ranks.getAxisSize(symbol)), 0};
    int64_t exponent = sign * factor.exponent;
    for (int64_t i = 0; i < std::abs(exponent); ++i) {
      Number &side = exponent > 0 ? numerator : denominator;
      side = calculator.mul(kF64, side, base);
    }
  }
  return calculator.div(kF64, numerator, denominator);
}

std::vector<Number> StepInterpreter::getRuleState(StringRef role) {
  for (auto &[name, rule] : rules)
    if (std::optional<Number> counter = rule.find(role, /*rank=*/0))
      return {*counter};
  return {};
}

Number StepInterpreter::sumTokens(int64_t rank) {
  BlockArgument tokens = step.getTokens();
  if (!tokens)
    return {};
  auto axes = cast<ValueType>(tokens.getType()).getAxes(PlacementKind::Partial);
  for (const auto &group : getGroups(axes)) {
    if (!llvm::is_contained(group, rank))
      continue;
    Number sum = getScalar(tokens, group.front());
    for (int64_t other : ArrayRef(group).drop_front())
      sum = calculator.add(kF64, sum, getScalar(tokens, other));
    return sum;
  }
  return {};
}

bool StepInterpreter::isCount(Number tokens) {
  return tokens.value >= std::numeric_limits<double>::min() &&
         std::isfinite(tokens.value);
}

Number StepInterpreter::getClipCoefficient(Value norm, Value max,
                                           std::optional<APFloat> constantMax,
                                           const APFloat &epsilon,
                                           int64_t rank) {
  Number most =
      max ? getScalar(max, rank) : Number{constantMax->convertToDouble(), 0};
  Number shifted = calculator.add(kF64, getScalar(norm, rank),
                                  {epsilon.convertToDouble(), 0});
  Number ratio = calculator.div(kF64, most, shifted);
  return calculator.minimum({1.0, 0}, ratio, /*ignoreNaN=*/false);
}

Number StepInterpreter::getSumSquares(ArrayRef<const Array *> arrays) {
  Number sum = sumSquares(calculator, *arrays.front());
  int64_t terms = arrays.front()->size();
  for (const Array *array : arrays.drop_front()) {
    sum = calculator.add(kF64, sum, sumSquares(calculator, *array));
    terms += array->size();
  }
  // A phase that lays arrays out in buckets, or slices them, adds the same
  // squares in another order. The bound holds for any order.
  if (!calculator.isTyped())
    sum.bound += Calculator::getSumBound(kF64, terms, sum.value + sum.bound);
  return sum;
}

Number StepInterpreter::getNorm(ValueRange operands) {
  if (operands.empty())
    return {};
  std::vector<Array> arrays;
  for (Value operand : operands)
    arrays.push_back(join(operand));
  auto pointers =
      llvm::map_to_vector(arrays, [](const Array &array) { return &array; });
  return calculator.sqrt(kF64, getSumSquares(pointers));
}

//===----------------------------------------------------------------------===//
// Ops of both phases
//===----------------------------------------------------------------------===//

void StepInterpreter::evaluateReduce(ReduceOp op) {
  for (auto [input, output] :
       llvm::zip_equal(op.getInputs(), op.getOutputs())) {
    auto type = cast<ValueType>(input.getType());
    PerRank sums = values.find(input)->second;
    bool isPartial = type.has(PlacementKind::Partial);
    PerRank addends =
        travel(calculator, sums, isPartial ? getReduceDtype(op) : nullptr);
    for (const auto &group :
         ranks.getGroups(type.getAxes(PlacementKind::Partial), type)) {
      auto arrays = llvm::map_to_vector(
          group, [&](int64_t rank) { return &addends[rank]; });
      Array sum = sumInOrder(calculator, *sums[group.front()].format, arrays);
      // Divides by the scale. If ranks have different numbers of backward
      // passes, the step is refused.
      if (type.isScaled()) {
        int64_t rank = group.front();
        Symbols symbols{{double(window->getBackwards(rank)), 0},
                        sumTokens(rank),
                        {getLossScale(), 0}};
        sum = scale(calculator, sum,
                    evaluateMonomial(type.getScale(), -1, symbols));
      }
      for (int64_t rank : group)
        sums[rank] = sum;
    }
    values[output] = std::move(sums);
  }
}

LogicalResult StepInterpreter::evaluate(Operation &op) {
  if (isa<YieldOp, ReturnOp>(op))
    return success();
  if (auto loop = dyn_cast<MicroBatchesOp>(op)) {
    evaluateMicroBatches(loop);
  } else if (auto arriving = dyn_cast<BackwardOp>(op)) {
    for (auto [source, gradient] :
         llvm::zip_equal(arriving.getSources().getAsRange<FlatSymbolRefAttr>(),
                         arriving.getGradients())) {
      auto type = cast<ValueType>(gradient.getType());
      values[gradient] = deliver(source, *getFormat(type.getElementType()));
    }
  } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
    evaluateReduce(reduce);
  } else if (auto norm = dyn_cast<NormOp>(op)) {
    Number result = getNorm(norm.getInputs());
    defineScalar(norm.getNorm(), [&](int64_t) { return result; });
  } else if (auto clip = dyn_cast<ClipOp>(op)) {
    for (auto [input, output] :
         llvm::zip_equal(clip.getInputs(), clip.getOutputs()))
      define(output, [&, input = input](int64_t rank) {
        Number coefficient =
            getClipCoefficient(clip.getNorm(), clip.getMax(),
                               clip.getConstantMax(), clip.getEpsilon(), rank);
        return scale(calculator, values[input][rank], coefficient);
      });
  } else if (auto constant = dyn_cast<ConstantOp>(op)) {
    defineScalar(constant.getResult(), [&](int64_t) {
      return Number{constant.getValue().convertToDouble(), 0};
    });
  } else if (auto read = dyn_cast<ReadScheduleOp>(op)) {
    defineScalar(read.getValue(), [&](int64_t rank) {
      return getRule(read.getScheduleAttr()).read(calculator, rank);
    });
  } else if (auto factor = dyn_cast<FactorOp>(op)) {
    defineScalar(factor.getFactor(), [&](int64_t rank) {
      Symbols symbols{{double(window->getBackwards(rank)), 0}, {}, {}};
      if (factor.getTokens())
        symbols.tokens = getScalar(factor.getTokens(), rank);
      if (factor.getLossScale())
        symbols.lossScale = getScalar(factor.getLossScale(), rank);
      return evaluateMonomial(factor.getScale().getFactors(), 1, symbols);
    });
  } else if (auto scaled = dyn_cast<ScaleOp>(op)) {
    define(scaled.getOutput(), [&](int64_t rank) {
      return scale(calculator, values[scaled.getInput()][rank],
                   getScalar(scaled.getFactor(), rank));
    });
  } else if (auto sum = dyn_cast<AddOp>(op)) {
    define(sum.getSum(), [&](int64_t rank) {
      return add(calculator, values[sum.getLhs()][rank],
                 values[sum.getRhs()][rank]);
    });
  } else if (auto squares = dyn_cast<SumSquaresOp>(op)) {
    defineScalar(squares.getSum(), [&](int64_t rank) {
      return getSumSquares(getArrays(squares.getInputs(), rank));
    });
  } else if (auto root = dyn_cast<SqrtOp>(op)) {
    defineScalar(root.getOutput(), [&](int64_t rank) {
      return calculator.sqrt(kF64, getScalar(root.getInput(), rank));
    });
  } else if (auto coefficient = dyn_cast<ClipCoefficientOp>(op)) {
    defineScalar(coefficient.getCoefficient(), [&](int64_t rank) {
      return getClipCoefficient(coefficient.getNorm(), coefficient.getMax(),
                                coefficient.getConstantMax(),
                                coefficient.getEpsilon(), rank);
    });
  } else {
    return evaluateOwn(op);
  }
  return success();
}
