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

using namespace mlir;
using namespace zero;
using namespace zero::prove;

static bool isOperation(BaseRef base, StringRef name) {
  return base->kind == BaseKind::operation && base->name == name;
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
    if (!StringRef(base->name).starts_with("cmpf "))
      return std::nullopt;
    // A sum is no base.
    auto evaluate = [&](Expr side) {
      bool isZero = llvm::any_of(
          zeros, [&](Expr zero) { return isMultiple(side, zero); });
      return isZero ? Range::ofNumber(0) : evaluateRange(side, *this);
    };
    return compareRanges(base->name, evaluate(base->operands[0]),
                         evaluate(base->operands[1]));
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
    /// It depends on the sign of a quotient by them.
    Set used;
  };

  explicit Divisors(Algebra &algebra) : algebra(algebra) {}

  const Found &find(Expr a);

private:
  const Found &find(BaseRef base);
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

/// Whether |a| may be 0, without facts of an applied step.
static bool mayBeZero(Expr a) {
  if (!evaluateRange(a, [](BaseRef) { return std::nullopt; }).has(0))
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

/// The divisors of |arm|, which is selected if |condition| is |truth|.
static Divisors::Found findSelected(const Divisors::Found &arm, Expr condition,
                                    bool truth) {
  Divisors::Found found;
  for (auto [from, to] : {std::pair(&arm.unsettled, &found.unsettled),
                          std::pair(&arm.used, &found.used)})
    for (Expr divisor : *from)
      if (mayHoldAtZero(condition, truth, divisor))
        to->insert(divisor);
  return found;
}

Divisors::Found Divisors::compute(BaseRef base) {
  StringRef name =
      base->kind == BaseKind::operation ? StringRef(base->name) : StringRef();
  Found found;
  auto add = [&](const Found &operand, bool usesSign) {
    unite(usesSign ? found.used : found.unsettled, operand.unsettled);
    unite(found.used, operand.used);
  };
  if (name == "select") {
    Expr condition = base->operands[0];
    add(find(condition), /*usesSign=*/true);
    for (bool truth : {true, false})
      add(findSelected(find(base->operands[truth ? 1 : 2]), condition, truth),
          /*usesSign=*/false);
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
  for (auto [i, operand] : llvm::enumerate(base->operands))
    add(find(operand), !isPlain && !(name == "copysign" && i == 0));
  return found;
}

const Divisors::Found &Divisors::find(BaseRef base) {
  auto it = knownBases.find(base);
  if (it == knownBases.end())
    it = knownBases.emplace(base, compute(base)).first;
  return it->second;
}

const Divisors::Found &Divisors::find(Expr a) {
  if (auto it = known.find(a); it != known.end())
    return it->second;
  Found found;
  for (const Term &term : a->getTerms())
    for (auto [base, exponent] : term.monomial) {
      const Found &inside = find(base);
      unite(found.unsettled, inside.unsettled);
      unite(found.used, inside.used);
      // A square may have been computed as -(0 - x * x), so its 0 has no sign.
      if (exponent > 0 && isOperation(base, "inverse"))
        found.unsettled.insert(base->operands[0]);
      else if (exponent < 0 && !isNeverZero(base))
        found.unsettled.insert(algebra.product({1, 1}, {{base, 1}}));
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
};
} // namespace

bool Quotients::isNotZero(Expr divisor, const Facts &facts) {
  RealNumbers numbers(proof.algebra, facts);
  if (!numbers.getBounds(divisor).isNotZero())
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
  return isKnown ||
         (parameter && isNotZero(divisor, addFactsOfState(proof.algebra, *facts,
                                                          *parameter)));
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
