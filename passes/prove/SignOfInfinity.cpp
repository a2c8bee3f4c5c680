//===- SignOfInfinity.cpp - Quotients that a step may compare -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/SignOfInfinity.h"

#include "passes/prove/Range.h"
#include "passes/prove/RealNumbers.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <set>

using namespace mlir;
using namespace zero;
using namespace zero::prove;

static bool isOperation(BaseRef base, StringRef name) {
  return base->kind == BaseKind::operation && base->name == name;
}

static Range getRange(Expr a) {
  return evaluateRange(a, [](BaseRef) { return std::nullopt; });
}

namespace {
/// What is known of numbers where |number| is 0.
class RangesAtZero {
public:
  explicit RangesAtZero(Expr number) {
    // A root and a magnitude are 0 where their operand is.
    for (Expr zero = number; zero;) {
      zeros.push_back(zero);
      BaseRef base = zero->asBase();
      bool goesOn =
          base && (isOperation(base, "sqrt") || isOperation(base, "absf"));
      zero = goesOn ? base->operands[0] : nullptr;
    }
  }

  std::optional<Range> operator()(BaseRef base) const {
    if (llvm::any_of(zeros, [&](Expr zero) { return zero->asBase() == base; }))
      return Range::ofNumber(0);
    // State may have any name.
    if (base->kind != BaseKind::operation ||
        !StringRef(base->name).starts_with("cmpf "))
      return std::nullopt;
    // A sum is no base. Sides that are not 0 are evaluated as all numbers are.
    auto isZero = [&](Expr side) {
      return llvm::any_of(zeros,
                          [&](Expr zero) { return isMultiple(side, zero); });
    };
    Expr a = base->operands[0], b = base->operands[1];
    if (isZero(a))
      return compareRanges(base->name, Range::ofNumber(0), getRange(b));
    if (isZero(b))
      return compareRanges(base->name, getRange(a), Range::ofNumber(0));
    return std::nullopt;
  }

private:
  static bool isMultiple(Expr a, Expr b);
  llvm::SmallVector<Expr, 2> zeros;
};

/// Finds divisors that may be 0.
class Divisors {
public:
  using Set = llvm::SmallSetVector<Expr, 2>;
  /// The divisors of a number.
  struct Found {
    /// Where they are 0, the number is infinite with a sign that is not known.
    Set unsettled;
    /// The same, and it is nan if infinities of two signs are added.
    Set opposed;
    /// It depends on the sign of a quotient by them.
    Set used;
  };

  explicit Divisors(Algebra &algebra) : algebra(algebra) {}

  const Found &find(Expr a);

private:
  const Found &find(BaseRef base);
  Found find(const Term &term);
  Found compute(BaseRef base);

  Algebra &algebra;
  std::unordered_map<Expr, Found> known;
  std::unordered_map<BaseRef, Found> knownBases;
};
} // namespace

/// Whether |a| is |b| times a fraction.
bool RangesAtZero::isMultiple(Expr a, Expr b) {
  llvm::ArrayRef<Term> x = a->getTerms(), y = b->getTerms();
  if (x.size() != y.size() || x.empty())
    return false;
  auto haveRatioOfFirst = [&](const Term &p, const Term &q) {
    auto left = prove::multiply(p.coefficient, y[0].coefficient);
    return left && left == prove::multiply(q.coefficient, x[0].coefficient) &&
           p.monomial == q.monomial;
  };
  return llvm::all_of(llvm::zip_equal(x, y), [&](auto terms) {
    return haveRatioOfFirst(std::get<0>(terms), std::get<1>(terms));
  });
}

/// Whether |condition| may be |truth| where |number| is 0.
static bool mayHoldAtZero(Expr condition, bool truth, Expr number) {
  Range range = evaluateRange(condition, RangesAtZero(number));
  return !range.isOne() || range.least == double(truth);
}

/// Whether a number from |least| to |most| may be 0 in f32.
static bool mayUnderflow(double least, double most) {
  constexpr double kLeast = 0x1p-149;
  return least <= kLeast && most >= -kLeast;
}

/// Whether |a| may be 0 in f32, without facts of an applied step.
static bool mayBeZero(Expr a) {
  Range range = getRange(a);
  if (!mayUnderflow(range.least, range.most))
    return false;
  BaseRef base = a->asBase();
  if (!base || !isOperation(base, "select"))
    return true;
  return llvm::any_of(ArrayRef({true, false}), [&](bool truth) {
    Expr arm = base->operands[truth ? 1 : 2];
    return mayHoldAtZero(base->operands[0], truth, arm) && mayBeZero(arm);
  });
}

static void unite(Divisors::Set &set, const Divisors::Set &other) {
  set.insert(other.begin(), other.end());
}

/// Adds those of an operand, whose sign the result has.
static void addPlain(Divisors::Found &found, const Divisors::Found &operand) {
  unite(found.unsettled, operand.unsettled);
  unite(found.opposed, operand.opposed);
  unite(found.used, operand.used);
}

/// Adds those of an operand on whose sign the result depends.
static void addUsed(Divisors::Found &found, const Divisors::Found &operand) {
  unite(found.used, operand.unsettled);
  unite(found.used, operand.used);
}

/// The divisors of |arm|, which is selected if |condition| is |truth|.
static Divisors::Found findSelected(const Divisors::Found &arm, Expr condition,
                                    bool truth) {
  Divisors::Found found;
  using Found = Divisors::Found;
  for (auto set : {&Found::unsettled, &Found::opposed, &Found::used})
    for (Expr divisor : arm.*set)
      if (mayHoldAtZero(condition, truth, divisor))
        (found.*set).insert(divisor);
  return found;
}

Divisors::Found Divisors::compute(BaseRef base) {
  StringRef name =
      base->kind == BaseKind::operation ? StringRef(base->name) : StringRef();
  Found found;
  if (name == "select") {
    Expr condition = base->operands[0];
    addUsed(found, find(condition));
    for (bool truth : {true, false})
      addPlain(found, findSelected(find(base->operands[truth ? 1 : 2]),
                                   condition, truth));
    return found;
  }
  // x / x and x - x are nan if x is infinite, whatever its sign is.
  if (name == "divf" || name == "subf") {
    found.used = find(base->operands[0]).used;
    return found;
  }
  bool isPlain = name.empty() ||
                 llvm::is_contained(
                     {"inverse", "sum", "addf", "mulf", "absf", "sqrt"}, name);
  for (auto [i, operand] : llvm::enumerate(base->operands)) {
    if (isPlain || (name == "copysign" && i == 0))
      addPlain(found, find(operand));
    else
      addUsed(found, find(operand));
    // 1 over infinity is 0, and 1 over nan is nan.
    if (name == "inverse")
      unite(found.used, find(operand).opposed);
  }
  return found;
}

const Divisors::Found &Divisors::find(BaseRef base) {
  auto it = knownBases.find(base);
  if (it == knownBases.end())
    it = knownBases.emplace(base, compute(base)).first;
  return it->second;
}

Divisors::Found Divisors::find(const Term &term) {
  Found found;
  for (auto [base, exponent] : term.monomial) {
    const Found &inside = find(base);
    addPlain(found, inside);
    // A square may have been computed as -(0 - x * x), so its 0 has no sign.
    // And it may be 0 where x is not.
    if (exponent > 0 && isOperation(base, "inverse"))
      found.unsettled.insert(
          exponent == 1 ? base->operands[0]
                        : algebra.product({1, 1}, {{base, -exponent}}));
    if (exponent > 0 || isNeverZero(base))
      continue;
    found.unsettled.insert(algebra.product({1, 1}, {{base, -exponent}}));
    unite(found.used, inside.opposed);
  }
  return found;
}

const Divisors::Found &Divisors::find(Expr a) {
  if (auto it = known.find(a); it != known.end())
    return it->second;
  Found found;
  for (const Term &term : a->getTerms()) {
    Found ofTerm = find(term);
    // (a + b) / x is one quotient, though it has two terms here.
    bool isAnother = !found.unsettled.empty() && !ofTerm.unsettled.empty() &&
                     found.unsettled != ofTerm.unsettled;
    addPlain(found, ofTerm);
    if (isAnother)
      unite(found.opposed, found.unsettled);
  }
  return known.emplace(a, std::move(found)).first->second;
}

namespace {
/// Reports one quotient of a step.
class Quotients {
public:
  Quotients(Proof &proof, const StepSemantics &semantics)
      : proof(proof), semantics(semantics), divisors(proof.algebra) {}

  void check(Operation *op, const llvm::Twine &what, Expr number,
             const ParameterSemantics *parameter = nullptr);

private:
  bool isNotZero(Expr divisor, const ParameterSemantics *parameter);
  bool isNotZero(Expr divisor, const Facts &facts);

  Proof &proof;
  const StepSemantics &semantics;
  Divisors divisors;
  std::optional<Facts> facts;
  /// Divisors that are not 0, whatever the state of a parameter is.
  llvm::DenseSet<Expr> notZero;
  /// Those that are not 0 by what a parameter with this new state has. All
  /// parameters of a group have the same.
  std::set<std::pair<Expr, std::vector<Expr>>> notZeroByState;
};
} // namespace

bool Quotients::isNotZero(Expr divisor, const Facts &facts) {
  Bounds bounds = RealNumbers(proof.algebra, facts).getBounds(divisor);
  // A count or a loss scale has no least number, but is one.
  bool hasEnd = bounds.least > 0 || bounds.most < 0;
  if (!bounds.isNotZero() ||
      (hasEnd && mayUnderflow(bounds.least, bounds.most)))
    return false;
  facts.describe(divisor, proof.assumed);
  return true;
}

bool Quotients::isNotZero(Expr divisor, const ParameterSemantics *parameter) {
  if (notZero.contains(divisor))
    return true;
  bool isKnown = !mayBeZero(divisor);
  if (!isKnown && !facts)
    facts = findFacts(proof.algebra, semantics, semantics);
  // Facts of state are a precondition, so only where there is no other way.
  isKnown = isKnown || isNotZero(divisor, *facts);
  if (isKnown)
    notZero.insert(divisor);
  if (isKnown || !parameter)
    return isKnown;
  std::vector<Expr> state;
  for (const IntervalSemantics &interval : parameter->intervals)
    for (auto &[role, number] : interval.roles)
      state.push_back(number.expr);
  std::pair key(divisor, std::move(state));
  if (notZeroByState.count(key))
    return true;
  if (!isNotZero(divisor, addFactsOfState(proof.algebra, *facts, *parameter)))
    return false;
  notZeroByState.insert(std::move(key));
  return true;
}

void Quotients::check(Operation *op, const llvm::Twine &what, Expr number,
                      const ParameterSemantics *parameter) {
  for (Expr divisor : divisors.find(number).used) {
    if (proof.report.hasErrors() || isNotZero(divisor, parameter))
      continue;
    proof.report.error(op)
        << what << " depends on the sign of a quotient that is infinite where "
        << toString(divisor)
        << " is 0, and the sign of 0 depends on the order of operations; add a "
           "positive number to a divisor that is not negative, or select the "
           "quotient only where a comparison of the divisor with 0 says that "
           "it is not 0";
  }
}

void prove::checkQuotients(Proof &proof, const StepSemantics &semantics) {
  Quotients quotients(proof, semantics);
  for (auto &[name, parameter] : semantics.parameters)
    for (const IntervalSemantics &interval : parameter.intervals)
      for (auto &[role, number] : interval.roles)
        if (interval.begin < interval.end)
          quotients.check(parameter.writer ? parameter.writer : semantics.step,
                          "new " + llvm::Twine(role) + " of '" +
                              name.getValue() + "'",
                          number.expr, &parameter);
  auto checkAll = [&](StringRef kind, const auto &numbers) {
    for (auto &[name, number] : numbers)
      quotients.check(semantics.step, kind + llvm::Twine(" '") + name + "'",
                      number.expr);
  };
  checkAll("counter", semantics.counters);
  checkAll("counter", semantics.skipped);
  checkAll("result", semantics.results);
  checkAll("result", semantics.skippedResults);
}
