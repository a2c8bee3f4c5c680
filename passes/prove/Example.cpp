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

#include "passes/prove/StepSemantics.h"

#include "llvm/Support/Format.h"

#include <cmath>

using namespace zero;
using namespace zero::prove;

namespace {
/// The inputs of a step, as rank 0 sees them.
struct Example {
  Algebra &algebra;
  int64_t ranks;
  bool isLong; // two backward passes, or one
  double state;
  double scalar = 0.5; // an input or a counter
  double gradient = 1; // times what tells gradients apart
  double parameter = 1;

  double getValue(Expr a) const {
    return algebra.evaluate(a, [&](BaseRef base) { return getValue(base); });
  }
  std::optional<double> getValue(BaseRef base) const;
};
} // namespace

std::optional<double> Example::getValue(BaseRef base) const {
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
  case BaseKind::symbol:
    // Numbers that show where one is missing.
    if (base->name == kAccumulation)
      return isLong ? 2 : 1;
    return base->name == kTokens ? 8 : 4;
  case BaseKind::tokens:
    return 8;
  case BaseKind::input:
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
  bool gradients = false, states = false, scalars = false;
  bool tokens = false, lossScale = false;
  for (Expr a : exprs)
    visitBases(a, [&](BaseRef base) {
      gradients |= base->kind == BaseKind::gradient;
      states |= base->kind == BaseKind::state;
      tokens |= base->kind == BaseKind::symbol && base->name == kTokens;
      lossScale |= base->kind == BaseKind::symbol && base->name != kTokens &&
                   base->name != kAccumulation;
      scalars |= base->kind == BaseKind::input || base->kind == BaseKind::old;
    });
  std::string text;
  llvm::raw_string_ostream os(text);
  if (gradients && example.gradient == 0) {
    os << "gradients are 0; ";
  } else if (gradients) {
    os << (example.isLong ? "gradients of 2 backward passes are 1 and 2"
                          : "the gradient of 1 backward pass is 1");
    if (example.ranks > 1)
      os << " on rank 0, " << (example.isLong ? "10 and 20" : "10")
         << " on rank 1";
    if (example.ranks > 2)
      os << ", 0 on others";
    os << "; ";
  }
  if (states)
    os << llvm::format("old parameters are %g, other state %g; ",
                       example.parameter, example.state);
  if (tokens)
    os << "ranks counted 8 tokens; ";
  if (lossScale)
    os << "the loss scale is 4; ";
  if (scalars)
    os << "inputs and counters are " << llvm::format("%g; ", example.scalar);
  return text;
}

static std::string describeExample(Expr a, Expr expected,
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
  bool isKnown = false;
  for (bool isLong : {false, true})
    for (double state : {0.0, 0.25}) {
      // One backward pass is never the last of several.
      if (tellsBackwards && !isLong)
        continue;
      Example example{algebra, ranks, isLong, state};
      double value = example.getValue(a);
      double right = example.getValue(expected);
      if (!std::isfinite(value) || !std::isfinite(right))
        continue;
      if (std::abs(value - right) > 1e-9 * std::abs(right))
        return describeExample(a, expected, example);
      isKnown = true;
    }
  // Numbers that are alike may still be divided by what can be 0.
  for (double Example::*zero : {&Example::scalar, &Example::gradient,
                                &Example::state, &Example::parameter}) {
    Example example{algebra, ranks, /*isLong=*/true, /*state=*/0.25};
    example.*zero = 0;
    if (isKnown && std::isfinite(example.getValue(a)) !=
                       std::isfinite(example.getValue(expected)))
      return describeExample(a, expected, example);
  }
  return "";
}
