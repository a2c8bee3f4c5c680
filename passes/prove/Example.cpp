//===- Example.cpp - A step in numbers that shows a difference ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of an element are powers of ten on the ranks, so that a sum tells
// which of them are in it.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Example.h"

#include "dialect/zero/StorageTypes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <cmath>
#include <set>
#include <string>

using namespace zero;
using namespace zero::prove;

namespace {
/// The inputs of a step, as rank 0 sees them.
struct Example {
  Algebra &algebra;
  int64_t ranks;
  bool isLong; // two backward passes, or one
  double state;
  double scalar = 0.5; // the first input, or a counter
  double gradient = 1; // times what tells gradients apart
  double parameter = 1;
  double tokens = 8; // that a caller counts
  /// A value for each base that is not known.
  llvm::function_ref<bool(BaseRef)> isUnknown = nullptr;
  double unknown = NAN;

  double getValue(Expr a) const {
    return algebra.evaluate(a, [&](BaseRef base) { return getValue(base); });
  }
  std::optional<double> getValue(BaseRef base) const;
  /// Of "input 0", "input 1", ..., each another number.
  double getInput(llvm::StringRef name) const {
    int index = 0;
    name.rsplit(' ').second.getAsInteger(10, index);
    return std::ldexp(scalar, -index);
  }
};
} // namespace

std::optional<double> Example::getValue(BaseRef base) const {
  if (isUnknown && isUnknown(base))
    return unknown;
  switch (base->kind) {
  case BaseKind::gradient: {
    // 1 and 2 on rank 0, ten times that on rank 1, nothing on others.
    double last = isLong ? 2 : 1;
    double former = isLong ? 1 : 0;
    bool isLast = base->epoch == Epoch::current || base->epoch == Epoch::last;
    double own = isLast                      ? last
                 : base->epoch == Epoch::all ? former + last
                                             : former;
    return gradient * (base->over == 0 && ranks > 1 ? 11 * own : own);
  }
  case BaseKind::delivered: // whole
    return isLong ? 2 : 1;
  case BaseKind::symbol:
    // Numbers that show where one is missing.
    if (base->name == kAccumulation)
      return isLong ? 2 : 1;
    return base->name == kTokens ? 8 : 4;
  case BaseKind::tokens:
    return tokens;
  case BaseKind::input:
    return getInput(base->name);
  case BaseKind::old:
    return scalar;
  case BaseKind::missing:
    return 0;
  case BaseKind::once:
    return 1;
  case BaseKind::state:
    return base->name == "parameter" || base->name == "master" ? parameter
                                                               : state;
  case BaseKind::sumOver:
    return getValue(base->operands[0]); // over this element
  case BaseKind::rankSum:
    return double(ranks) * getValue(base->operands[0]);
  case BaseKind::undefined:
  case BaseKind::constant:
  case BaseKind::operation:
    return std::nullopt;
  }
  llvm_unreachable("unknown kind of base");
}

/// The numbers that |exprs| are given.
static std::string describeGiven(llvm::ArrayRef<Expr> exprs,
                                 const Example &example) {
  bool gradients = false, states = false, counters = false, counts = false;
  bool tokens = false, lossScale = false;
  std::set<std::string> inputs;
  for (Expr a : exprs)
    visitBases(a, [&](BaseRef base) {
      gradients |= base->kind == BaseKind::gradient;
      states |= base->kind == BaseKind::state;
      counts |= base->kind == BaseKind::tokens;
      tokens |= base->kind == BaseKind::symbol && base->name == kTokens;
      lossScale |= base->kind == BaseKind::symbol && base->name != kTokens &&
                   base->name != kAccumulation;
      counters |= base->kind == BaseKind::old;
      if (base->kind == BaseKind::input)
        inputs.insert(base->name);
    });
  std::string text;
  llvm::raw_string_ostream os(text);
  if (gradients && example.gradient == 0) {
    os << "gradients are 0; ";
  } else if (gradients) {
    double one = example.gradient;
    auto print = [&](double rank) {
      os << llvm::format("%g", rank * one);
      if (example.isLong)
        os << llvm::format(" and %g", 2 * rank * one);
    };
    os << (example.isLong ? "gradients of 2 backward passes are "
                          : "the gradient of 1 backward pass is ");
    print(1);
    if (example.ranks > 1) {
      os << " on rank 0, ";
      print(10);
      os << " on rank 1";
    }
    if (example.ranks > 2)
      os << ", 0 on others";
    os << "; ";
  }
  if (states)
    os << llvm::format("old parameters are %g, other state %g; ",
                       example.parameter, example.state);
  if (llvm::any_of(exprs, [](Expr a) { return a->isUndefined(); }))
    os << "what is not known is nan; ";
  if (counts)
    os << llvm::format("ranks counted %g tokens; ", example.tokens);
  else if (tokens)
    os << "ranks counted 8 tokens; ";
  if (lossScale)
    os << "the loss scale is 4; ";
  for (const std::string &input : inputs)
    os << input << llvm::format(" is %g; ", example.getInput(input));
  if (counters)
    os << llvm::format("counters are %g; ", example.scalar);
  return text;
}

static std::string describeDifference(Expr a, Expr expected,
                                      const Example &example) {
  std::string text;
  llvm::raw_string_ostream os(text);
  // The sign of nan depends on the machine.
  auto print = [&](Expr number) {
    double value = example.getValue(number);
    os << llvm::format("%.9g", std::isnan(value) ? double(NAN) : value);
  };
  os << "counterexample: " << describeGiven({a, expected}, example)
     << "rank 0 has ";
  print(a);
  os << ", expected ";
  print(expected);
  return text;
}

std::string prove::findExample(Algebra &algebra, Expr a, Expr expected,
                               int64_t ranks) {
  bool tellsBackwards = false;
  visitBases(a, [&](BaseRef base) {
    tellsBackwards |=
        base->kind == BaseKind::gradient && base->epoch != Epoch::all;
  });
  std::vector<Example> examples;
  for (double gradient : {1.0, -1.0, 0.001})
    for (bool isLong : {false, true})
      for (double state : {0.0, 0.25})
        // One backward pass is never the last of several.
        if (isLong || !tellsBackwards)
          examples.push_back(
              {algebra, ranks, isLong, state, /*scalar=*/0.5, gradient});
  for (const Example &example : examples) {
    double value = example.getValue(a);
    double right = example.getValue(expected);
    if (std::isfinite(value) && std::isfinite(right) &&
        std::abs(value - right) > 1e-9 * std::abs(right))
      return describeDifference(a, expected, example);
  }
  // One that is divided by what can be 0, or that reads what is not written.
  for (double Example::*zero :
       {&Example::scalar, &Example::gradient, &Example::state,
        &Example::parameter, &Example::tokens}) {
    Example example{algebra, ranks, /*isLong=*/true, /*state=*/0.25};
    example.*zero = 0;
    examples.push_back(example);
  }
  Example endless{algebra, ranks, /*isLong=*/true, /*state=*/0.25};
  endless.tokens = INFINITY;
  examples.push_back(endless);
  for (const Example &example : examples)
    if (std::isfinite(example.getValue(a)) !=
        std::isfinite(example.getValue(expected)))
      return describeDifference(a, expected, example);
  return "";
}

std::string prove::findDependence(Algebra &algebra, Expr a, int64_t ranks,
                                  llvm::function_ref<bool(BaseRef)> isUnknown) {
  BaseRef first = nullptr;
  visitBases(a, [&](BaseRef base) {
    if (!first && isUnknown(base))
      first = base;
  });
  if (!first)
    return "";
  Example example{algebra, ranks, /*isLong=*/true, /*state=*/0.25};
  example.isUnknown = isUnknown;
  auto evaluate = [&](double unknown) {
    example.unknown = unknown;
    return example.getValue(a);
  };
  std::vector<double> others = {2.0, 0.5, 0.0, 1e30, double(NAN)};
  // Numbers that it may be compared with.
  visitBases(a, [&](BaseRef base) {
    for (Expr operand : base->operands)
      if (auto number = operand->asRational())
        others.push_back(number->asDouble());
  });
  double least = evaluate(1);
  for (double other : others) {
    double value = evaluate(other);
    if (value == least || (std::isnan(value) && std::isnan(least)))
      continue;
    std::string text;
    llvm::raw_string_ostream os(text);
    auto print = [&](double number) {
      // The sign of nan depends on the machine.
      os << llvm::format("%.9g", std::isnan(number) ? double(NAN) : number);
    };
    os << "counterexample: " << describeGiven({a}, example) << "it is ";
    print(least);
    os << " where " << toString(first) << " is 1, and ";
    print(value);
    os << " where this is ";
    print(other);
    return text;
  }
  return "";
}

std::string prove::findDependence(Algebra &algebra, Expr a, int64_t ranks) {
  return findDependence(algebra, a, ranks, [](BaseRef base) {
    bool isOwn = base->own || base->hasOwnCount;
    return base->kind == BaseKind::undefined ||
           (isOwn && llvm::none_of(base->operands, [](Expr operand) {
              return operand->getOwn() || operand->hasOwnCount();
            }));
  });
}

std::string prove::findRounding(Precision actual, Precision expected) {
  std::string text;
  llvm::raw_string_ostream os(text);
  constexpr unsigned kF64Bits = 53;
  os << "counterexample: ";
  if (actual.mantissa < expected.mantissa && actual.mantissa < kF64Bits) {
    // Half a unit in the last place of 1 is rounded to even.
    os << llvm::format("%.9g", 1 + std::ldexp(1, -int(actual.mantissa)))
       << " becomes 1";
    return text;
  }
  constexpr unsigned kF64Exponent = 11;
  if (actual.exponent >= expected.exponent || actual.exponent >= kF64Exponent)
    return "";
  os << llvm::format("%.9g", std::ldexp(1, 1 << (actual.exponent - 1)))
     << " becomes inf";
  return text;
}

std::string prove::findRounding(unsigned bits) {
  Precision narrow;
  narrow.mantissa = bits;
  return findRounding(narrow, Precision());
}

std::string prove::findOverflow(unsigned bits) {
  constexpr unsigned kWide = 8; // exponents in which 256 * 256 is a number
  return ("counterexample: the square of " +
          llvm::StringRef(getExponentBits(bits) < kWide ? "256" : "1e+20") +
          " is inf in " + getStorageTypeName(bits))
      .str();
}

std::string prove::describeExample(Situation situation, double outcome) {
  llvm::SmallVector<llvm::StringRef> parts;
  if (situation.nonfinite)
    parts.push_back("a gradient of rank 0 is nan");
  if (situation.missing)
    parts.push_back("1 gradient of rank 0 is missing");
  if (situation.unequal)
    parts.push_back("rank 0 makes 2 backward passes, the others 1");
  if (situation.noTokens)
    parts.push_back("ranks counted 0 tokens");
  if (parts.empty())
    parts.push_back("gradients are 1");
  return "counterexample: " + llvm::join(parts, ", ") + "; the outcome is " +
         describeOutcome(outcome);
}
