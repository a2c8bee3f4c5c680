//===- Compare.cpp - Do two steps mean the same? --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "passes/prove/Example.h"
#include "passes/prove/StepSemantics.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

namespace {
class Comparison {
public:
  Comparison(Proof &proof, const StepSemantics &first,
             const StepSemantics &second)
      : proof(proof), first(first), second(second) {}

  void run();

private:
  InFlightDiagnostic error(Operation *op) {
    InFlightDiagnostic diagnostic = proof.report.error(op ? op : second.step);
    return diagnostic;
  }
  void compareContract(const ParameterSemantics &a,
                       const ParameterSemantics &b);
  void compareParameter(const ParameterSemantics &a,
                        const ParameterSemantics &b);
  void compareElements(const ParameterSemantics &a, const ParameterSemantics &b,
                       const IntervalSemantics &x, const IntervalSemantics &y,
                       int64_t element);
  bool dependsOnNextScale(Expr a);
  void compareScalars(StringRef kind,
                      ArrayRef<std::pair<std::string, Number>> a,
                      ArrayRef<std::pair<std::string, Number>> b);

  Proof &proof;
  const StepSemantics &first;
  const StepSemantics &second;
};
} // namespace

void Comparison::compareContract(const ParameterSemantics &a,
                                 const ParameterSemantics &b) {
  ParameterOp one = a.op, two = b.op;
  StringRef name = one.getSymName();
  auto differ = [&](StringRef what, const llvm::Twine &x,
                    const llvm::Twine &y) {
    error(two) << what << " of '" << name << "' is " << y << ", expected " << x;
  };
  auto shapeOf = [](ParameterOp op) {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::interleave(op.getShape(), os, "x");
    return text;
  };
  auto toText = [](auto value) {
    std::string text;
    llvm::raw_string_ostream(text) << value;
    return text;
  };
  if (one.getShape() != two.getShape())
    differ("shape", shapeOf(one), shapeOf(two));
  if (one.getValueType().getPlacements() !=
          two.getValueType().getPlacements() ||
      one.getValueType().getPresent() != two.getValueType().getPresent())
    differ("placement", toText(one.getValueType()), toText(two.getValueType()));
  if (a.arrivesOver != b.arrivesOver)
    differ("set of axes over which ranks have shares of the gradient",
           first.axes.describe(a.arrivesOver),
           second.axes.describe(b.arrivesOver));
  if (one.getDtype() != two.getDtype())
    differ("storage type", toText(one.getDtype()), toText(two.getDtype()));
  if (one.getOptional() != two.getOptional())
    differ("optional flag", one.getOptional() ? "set" : "not set",
           two.getOptional() ? "set" : "not set");
  if (one.getUses() != two.getUses())
    differ("number of uses", llvm::Twine(one.getUses()),
           llvm::Twine(two.getUses()));
  if (a.arrival != b.arrival)
    differ("type of arriving gradients", toText(a.arrival), toText(b.arrival));
  if (a.normalization != b.normalization)
    differ("normalization of an arriving gradient", toString(a.normalization),
           toString(b.normalization));
  if (!b.summedReduceDtype.holds(a.summedReduceDtype))
    differ("reduce dtype of sums over elements", a.summedReduceDtype.describe(),
           b.summedReduceDtype.describe());
  // Of a role that one step does not have, compareElements() tells.
  for (auto [role, type] : a.types)
    if (Type other = b.types.lookup(role);
        other && other != type && a.elements > 0)
      differ("type of '" + role.getValue().str() + "'", toText(type),
             toText(other));
  if (!b.kept.holds(a.kept))
    differ("type of kept gradients", a.kept.describe(), b.kept.describe());
}

/// How much there is to read.
static size_t getSize(Expr a) {
  size_t size = a->getTerms().size();
  visitBases(a, [&](BaseRef) { ++size; });
  return size;
}

/// The part of |a| that is linear in a gradient, without all that stays the
/// same for each of them.
static Expr getGradientPart(Algebra &algebra, Expr a) {
  return algebra.mapTerms(a, [&](const Term &term) {
    bool isLinear = llvm::any_of(term.monomial, [](auto factor) {
      return factor.first->kind == BaseKind::gradient && factor.second == 1;
    });
    return isLinear ? algebra.product(term.coefficient, term.monomial)
                    : algebra.integer(0);
  });
}

/// How often the gradient in |a| counts, compared with that in |expected|.
static std::optional<Rational> getShare(Algebra &algebra, Expr a,
                                        Expr expected) {
  Expr part = getGradientPart(algebra, a);
  Expr whole = getGradientPart(algebra, expected);
  if (part->getTerms().size() != 1 || whole->getTerms().size() != 1 ||
      part == whole)
    return std::nullopt;
  const Term &x = part->getTerms()[0], &y = whole->getTerms()[0];
  if (x.monomial != y.monomial)
    return std::nullopt;
  return prove::multiply(x.coefficient,
                         {y.coefficient.denominator, y.coefficient.numerator});
}

/// Whether |a| contains the loss scale of the next step.
bool Comparison::dependsOnNextScale(Expr a) {
  bool depends = false;
  for (auto &[name, number] : second.counters)
    if (!second.lossScale.empty() &&
        StringRef(name).starts_with(second.lossScale + "."))
      if (BaseRef next = number.expr->asBase();
          next && next->kind == BaseKind::operation)
        visitBases(a, [&](BaseRef base) { depends |= base == next; });
  return depends;
}

void Comparison::compareElements(const ParameterSemantics &a,
                                 const ParameterSemantics &b,
                                 const IntervalSemantics &x,
                                 const IntervalSemantics &y, int64_t element) {
  ParameterOp op = b.op;
  // A mistake shows in all roles. The shortest expression explains it best.
  const Number *shown = nullptr;
  const Number *shownExpected = nullptr;
  std::optional<Narrowing> shownNarrowing;
  std::string shownRole;
  size_t length = 0;
  for (auto &[role, expected] : x.roles) {
    const Number *number = y.find(role);
    if (!number) {
      error(b.writer) << "'" << op.getSymName() << "' has no " << role;
      continue;
    }
    bool differs = number->expr != expected.expr;
    std::optional<Narrowing> narrowing =
        number->roundings.findNarrower(expected.roundings, role);
    if (!differs && !narrowing &&
        number->reduceDtype.holds(expected.reduceDtype))
      continue;
    size_t size = getSize(number->expr) + getSize(expected.expr);
    if (shown && size >= length)
      continue;
    shown = number;
    shownExpected = &expected;
    shownNarrowing = narrowing;
    shownRole = role;
    length = size;
  }
  if (shown && shown->expr != shownExpected->expr) {
    InFlightDiagnostic diagnostic = error(b.writer);
    if (dependsOnNextScale(shown->expr)) {
      diagnostic << "element " << element << " of '" << op.getSymName()
                 << "': new " << shownRole << " depends on @"
                 << second.lossScale
                 << " as it is for the next step, expected the version that "
                    "multiplied its gradients";
      return;
    }
    diagnostic << "element " << element << " of '" << op.getSymName()
               << "': new " << shownRole << " is " << toString(shown->expr)
               << ", expected " << toString(shownExpected->expr);
    if (auto ratio = getShare(proof.algebra, shown->expr, shownExpected->expr))
      diagnostic << ": its gradient counts " << ratio->numerator
                 << (ratio->denominator == 1
                         ? ""
                         : "/" + std::to_string(ratio->denominator))
                 << " times";
    Operation *writer = b.writer ? b.writer : second.step;
    Report::attach(diagnostic, writer->getLoc(),
                   findExample(proof.algebra, shown->expr, shownExpected->expr,
                               second.getNumRanks()));
    if (a.writer)
      diagnostic.attachNote(a.writer->getLoc()) << "expected by this update";
  } else if (shown && !shownNarrowing) {
    error(b.writer) << "element " << element << " of '" << op.getSymName()
                    << "': its gradient travels as "
                    << shown->reduceDtype.describe() << ", expected "
                    << (shownExpected->reduceDtype == Precision()
                            ? "its own type"
                            : shownExpected->reduceDtype.describe());
  } else if (shown) {
    error(b.writer) << "element " << element << " of '" << op.getSymName()
                    << "': " << shownNarrowing->source.describe() << " in new "
                    << shownRole << " went through "
                    << shownNarrowing->actual.describe() << ", expected "
                    << shownNarrowing->expected.describe();
  }
  for (auto &[role, number] : y.roles)
    if (!x.find(role))
      error(b.writer) << "'" << op.getSymName() << "' has a " << role
                      << ", which the other step has not";
}

void Comparison::compareParameter(const ParameterSemantics &a,
                                  const ParameterSemantics &b) {
  compareContract(a, b);
  ParameterOp op = a.op;
  int64_t end = a.elements;
  auto x = a.intervals.begin(), y = b.intervals.begin();
  // Neighbours with one meaning are one interval to the reader of a report.
  const IntervalSemantics *lastX = nullptr, *lastY = nullptr;
  auto isSame = [](const IntervalSemantics *last,
                   const IntervalSemantics &now) {
    return last && last->roles == now.roles;
  };
  for (int64_t element = 0; element < end;) {
    while (x != a.intervals.end() && x->end <= element)
      ++x;
    while (y != b.intervals.end() && y->end <= element)
      ++y;
    if (x == a.intervals.end() || y == b.intervals.end()) {
      if ((x == a.intervals.end()) != (y == b.intervals.end()))
        error(b.writer) << "element " << element << " of '" << op.getSymName()
                        << "' is updated by one step only";
      return;
    }
    if (!isSame(lastX, *x) || !isSame(lastY, *y))
      compareElements(a, b, *x, *y, element);
    lastX = &*x;
    lastY = &*y;
    element = std::min(x->end, y->end);
  }
}

void Comparison::compareScalars(StringRef kind,
                                ArrayRef<std::pair<std::string, Number>> a,
                                ArrayRef<std::pair<std::string, Number>> b) {
  llvm::StringMap<const Number *> expectedByName, byName;
  for (auto &[name, number] : a)
    expectedByName.try_emplace(name, &number);
  for (auto &[name, number] : b)
    byName.try_emplace(name, &number);
  for (auto &[name, expected] : a) {
    const Number *number = byName.lookup(name);
    if (!number)
      error(second.step) << kind << " '" << name << "' is missing";
    else if (number->expr != expected.expr) {
      InFlightDiagnostic diagnostic = error(second.step);
      diagnostic << kind << " '" << name << "' is " << toString(number->expr)
                 << ", expected " << toString(expected.expr);
      Report::attach(diagnostic, second.step->getLoc(),
                     findExample(proof.algebra, number->expr, expected.expr,
                                 second.getNumRanks()));
    } else if (auto narrowing =
                   number->roundings.findNarrower(expected.roundings)) {
      error(second.step) << kind << " '" << name
                         << "': " << narrowing->source.describe()
                         << " went through " << narrowing->actual.describe()
                         << ", expected " << narrowing->expected.describe();
    }
  }
  for (auto &[name, number] : b)
    if (!expectedByName.contains(name))
      error(second.step) << kind << " '" << name
                         << "' is none of the other step";
}

void Comparison::run() {
  if (!(first.axes == second.axes)) {
    error(second.step) << "runs on " << countOf(second.getNumRanks(), "rank")
                       << " over " << second.axes.describe(second.axes.getAll())
                       << ", expected " << first.getNumRanks() << " over "
                       << first.axes.describe(first.axes.getAll());
    return;
  }
  if (first.lossScale != second.lossScale)
    error(second.step) << "has "
                       << (second.lossScale.empty()
                               ? "no loss scale"
                               : "loss scale @" + second.lossScale)
                       << ", expected "
                       << (first.lossScale.empty() ? "none"
                                                   : "@" + first.lossScale);
  if (first.inputs.size() != second.inputs.size())
    error(second.step) << "takes " << countOf(second.inputs.size(), "scalar")
                       << " at apply, expected " << first.inputs.size();
  for (size_t i = 0; i < std::min(first.inputs.size(), second.inputs.size());
       ++i) {
    const InputSemantics &a = first.inputs[i], &b = second.inputs[i];
    auto describe = [&](const InputSemantics &input) {
      std::string over = first.axes.describe(input.over);
      return std::string(input.isTokens ? "a number of tokens" : "a number") +
             (over.empty() ? ", the same on all ranks"
                           : ", an addend of each rank over " + over);
    };
    if (!(a == b))
      error(second.step) << "input " << i << " of apply is " << describe(b)
                         << ", expected " << describe(a);
  }
  compareActivations(proof, first, second);
  for (auto &[name, parameter] : first.parameters) {
    auto it = second.parameters.find(name);
    if (it == second.parameters.end())
      error(second.step) << "'" << name.getValue() << "' is not updated";
    else
      compareParameter(parameter, it->second);
  }
  for (auto &[name, parameter] : second.parameters)
    if (!first.parameters.contains(name))
      error(parameter.writer)
          << "'" << name.getValue() << "' is updated by one step only";
  compareScalars("counter", first.counters, second.counters);
  compareScalars("after a skipped step, counter", first.skipped,
                 second.skipped);
  compareScalars("initial value of counter", first.initials, second.initials);
  compareScalars("result", first.results, second.results);
  // Callers know results by their position, too.
  for (auto [a, b] : llvm::zip(first.results, second.results))
    if (a.first != b.first) {
      error(second.step) << "result '" << b.first << "' is where '" << a.first
                         << "' is expected";
      break;
    }
  for (int i = 0; i < kNumSituations; ++i)
    if (mayHappen(getSituation(i), first) &&
        mayHappen(getSituation(i), second) &&
        first.outcomes[i] != second.outcomes[i])
      error(second.step) << "where " << describe(getSituation(i))
                         << ", the outcome is "
                         << describeOutcome(second.outcomes[i]) << ", expected "
                         << describeOutcome(first.outcomes[i]);
}

void prove::compareSemantics(Proof &proof, const StepSemantics &first,
                             const StepSemantics &second) {
  Comparison(proof, first, second).run();
}
