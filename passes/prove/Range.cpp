//===- Range.cpp - All values that a number may have ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Range.h"

#include "passes/prove/Bounds.h"

#include <cmath>

using namespace zero;
using namespace zero::prove;

Range Range::ofNumber(double value) {
  return std::isnan(value) ? Range{kInfinity, -kInfinity, true}
                           : Range{value, value};
}

Range Range::ofAll() { return {-kInfinity, kInfinity, true}; }
Range Range::ofAllFrom0() { return {0, kInfinity, true}; }

static Range unite(Range a, Range b) {
  return {std::min(a.least, b.least), std::max(a.most, b.most), a.nan || b.nan};
}

/// The range of a function that is monotonous in both numbers. At the ends it
/// may be nan, and is what it is beside them otherwise.
static Range fromEnds(Range a, Range b,
                      llvm::function_ref<double(double, double)> function) {
  Range result{kInfinity, -kInfinity, a.nan || b.nan};
  if (!a.hasNumbers() || !b.hasNumbers())
    return result;
  for (double x : {a.least, a.most})
    for (double y : {b.least, b.most})
      if (double value = function(x, y); !std::isnan(value))
        result = unite(result, Range::ofNumber(value));
  return result;
}

static bool hasInfinity(Range a) {
  return a.has(kInfinity) || a.has(-kInfinity);
}

static bool hasFinite(Range a) {
  return a.least < a.most || std::isfinite(a.least);
}

static Range add(Range a, Range b) {
  Range sum = fromEnds(a, b, [](double x, double y) { return x + y; });
  sum.nan |= (a.has(kInfinity) && b.has(-kInfinity)) ||
             (a.has(-kInfinity) && b.has(kInfinity));
  return sum;
}

static Range multiply(Range a, Range b) {
  Range product = fromEnds(a, b, [](double x, double y) { return x * y; });
  // 0 times what is infinite at both ends is nan there, and 0 between them.
  if ((a.has(0) && hasFinite(b)) || (hasFinite(a) && b.has(0)))
    product = unite(product, Range::ofNumber(0));
  product.nan |= (a.has(0) && hasInfinity(b)) || (hasInfinity(a) && b.has(0));
  return product;
}

static Range invert(Range a) {
  // Nobody knows the sign of 0.
  if (a.has(0))
    return {-kInfinity, kInfinity, a.nan};
  return a.hasNumbers() ? Range{1 / a.most, 1 / a.least, a.nan} : a;
}

static Range getMagnitude(Range a) {
  if (!a.hasNumbers())
    return a;
  double least = std::abs(a.least), most = std::abs(a.most);
  return {a.has(0) ? 0 : std::min(least, most), std::max(least, most), a.nan};
}

static Range raise(Range a, int64_t exponent) {
  if (exponent < 0)
    return invert(raise(a, -exponent));
  if (!a.hasNumbers())
    return a;
  if (exponent % 2 == 0)
    a = getMagnitude(a);
  auto power = double(exponent);
  return {std::pow(a.least, power), std::pow(a.most, power), a.nan};
}

static Range getRoot(Range a) {
  Range root{std::sqrt(std::max(a.least, 0.0)), std::sqrt(a.most),
             a.nan || a.least < 0};
  return a.most < 0 ? Range::ofNumber(NAN) : root;
}

static Range copySign(Range a, Range sign) {
  Range size = getMagnitude(a);
  if (!size.hasNumbers() || (sign.least > 0 && !sign.nan))
    return size;
  if (sign.most < 0 && !sign.nan)
    return {-size.most, -size.least, size.nan};
  return {-size.most, size.most, size.nan};
}

/// The range of a truth value.
static Range toRange(bool mayBeTrue, bool mayBeFalse) {
  return {mayBeFalse ? 0.0 : 1.0, mayBeTrue ? 1.0 : 0.0};
}
static bool mayBeTrue(Range a) { return a.nan || a.least != 0 || a.most != 0; }
static bool mayBeFalse(Range a) { return a.has(0); }

static Range compare(llvm::StringRef predicate, Range a, Range b) {
  bool mayBeUnordered = a.nan || b.nan;
  bool mayBeOrdered = a.hasNumbers() && b.hasNumbers();
  if (predicate == "ord")
    return toRange(mayBeOrdered, mayBeUnordered);
  if (predicate == "uno")
    return toRange(mayBeUnordered, mayBeOrdered);
  if (predicate == "true" || predicate == "false")
    return Range::ofNumber(predicate == "true");
  bool isTrueForNan = predicate.consume_front("u");
  if (!isTrueForNan)
    predicate.consume_front("o");
  bool differ = a.least != b.most || a.most != b.least;
  bool meet = a.least <= b.most && b.least <= a.most;
  bool holds = false, fails = false;
  if (predicate == "eq" || predicate == "ne") {
    holds = meet;
    fails = differ;
    if (predicate == "ne")
      std::swap(holds, fails);
  } else {
    if (predicate.starts_with("g"))
      std::swap(a, b);
    bool orEqual = predicate.ends_with("e");
    holds = orEqual ? a.least <= b.most : a.least < b.most;
    fails = orEqual ? a.most > b.least : a.most >= b.least;
  }
  return toRange((mayBeOrdered && holds) || (mayBeUnordered && isTrueForNan),
                 (mayBeOrdered && fails) || (mayBeUnordered && !isTrueForNan));
}

Range prove::compareRanges(llvm::StringRef name, Range a, Range b) {
  name.consume_front("cmpf ");
  return compare(name, a, b);
}

/// The lesser of both; of a number and nan the number.
static Range getLeastNumber(Range a, Range b) {
  Range least =
      fromEnds(a, b, [](double x, double y) { return std::min(x, y); });
  if (a.nan)
    least = unite(least, b);
  if (b.nan)
    least = unite(least, a);
  least.nan = a.nan && b.nan;
  return least;
}

static Range negate(Range a) { return {-a.most, -a.least, a.nan}; }

static Range evaluateOperation(llvm::StringRef name, llvm::ArrayRef<Range> x) {
  if (name == "inverse")
    return invert(x[0]);
  if (name == "sqrt")
    return getRoot(x[0]);
  if (name == "sum")
    return x[0];
  if (name == "addf")
    return add(x[0], x[1]);
  if (name == "mulf")
    return multiply(x[0], x[1]);
  if (name == "absf")
    return getMagnitude(x[0]);
  if (name == "subf") // minus itself
    return {0, 0, x[0].nan || hasInfinity(x[0])};
  if (name == "divf") // by itself
    return {1, 1, x[0].nan || x[0].has(0) || hasInfinity(x[0])};
  if (name == "copysign")
    return copySign(x[0], x[1]);
  if (name == "select")
    return !mayBeTrue(x[0])    ? x[2]
           : !mayBeFalse(x[0]) ? x[1]
                               : unite(x[1], x[2]);
  if (name == "andi")
    return toRange(mayBeTrue(x[0]) && mayBeTrue(x[1]),
                   mayBeFalse(x[0]) || mayBeFalse(x[1]));
  if (name == "ori")
    return toRange(mayBeTrue(x[0]) || mayBeTrue(x[1]),
                   mayBeFalse(x[0]) && mayBeFalse(x[1]));
  if (name == "minimumf")
    return fromEnds(x[0], x[1],
                    [](double a, double b) { return std::min(a, b); });
  if (name == "maximumf")
    return fromEnds(x[0], x[1],
                    [](double a, double b) { return std::max(a, b); });
  if (name == "minnumf")
    return getLeastNumber(x[0], x[1]);
  if (name == "maxnumf")
    return negate(getLeastNumber(negate(x[0]), negate(x[1])));
  if (name.starts_with("cmpf "))
    return compareRanges(name, x[0], x[1]);
  return Range::ofAll();
}

namespace {
/// One evaluation.
class Evaluation {
public:
  explicit Evaluation(
      llvm::function_ref<std::optional<Range>(BaseRef)> function)
      : function(function) {}

  Range evaluate(Expr a);

private:
  Range evaluate(BaseRef base);

  llvm::function_ref<std::optional<Range>(BaseRef)> function;
  llvm::DenseMap<const void *, Range> known;
};
} // namespace

Range Evaluation::evaluate(BaseRef base) {
  if (auto given = function(base))
    return *given;
  if (base->kind == BaseKind::constant)
    return Range::ofNumber(base->value);
  if (base->kind != BaseKind::operation)
    return Range::ofAll();
  if (auto it = known.find(base); it != known.end())
    return it->second;
  llvm::SmallVector<Range> operands;
  for (Expr operand : base->operands)
    operands.push_back(evaluate(operand));
  Range result = evaluateOperation(base->name, operands);
  known.insert({base, result});
  return result;
}

Range Evaluation::evaluate(Expr a) {
  if (auto it = known.find(a); it != known.end())
    return it->second;
  Range sum = Range::ofNumber(0);
  for (const Term &term : a->getTerms()) {
    // The coefficient comes last: 0 times what overflows is nan.
    Range product = Range::ofNumber(1);
    for (auto [base, exponent] : term.monomial)
      product = multiply(product, raise(evaluate(base), exponent));
    sum = add(sum,
              multiply(product, Range::ofNumber(term.coefficient.asDouble())));
  }
  known.insert({a, sum});
  return sum;
}

Range prove::evaluateRange(
    Expr a, llvm::function_ref<std::optional<Range>(BaseRef)> function) {
  return Evaluation(function).evaluate(a);
}
