//===- Outcome.cpp - When a step is applied -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An outcome is a number that a scalar program computes, and programs that
// differ may compute the same one. So it is not compared as an expression: it
// is evaluated in each situation that it is about.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/StepSemantics.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>
#include <set>

using namespace mlir;
using namespace zero;
using namespace zero::prove;

Situation prove::getSituation(int index) {
  return {(index & 1) != 0, (index & 2) != 0, (index & 4) != 0,
          (index & 8) != 0};
}

bool prove::mayHappen(Situation situation, const StepSemantics &semantics) {
  // Without elements there is nothing that is not finite.
  if (situation.nonfinite &&
      llvm::none_of(semantics.parameters, [](const auto &entry) {
        ParameterOp op = entry.second.op;
        return op.getNumElements() > 0;
      }))
    return false;
  if (situation.noTokens && !semantics.dividesByTokens)
    return false;
  // Ranks that wait for each other in each backward pass make equally many, or
  // stop.
  return !situation.unequal || !semantics.allMeet();
}

std::string prove::describe(Situation situation) {
  SmallVector<StringRef> parts;
  if (situation.nonfinite)
    parts.push_back("a gradient is not finite");
  if (situation.missing)
    parts.push_back("a gradient is missing");
  if (situation.unequal)
    parts.push_back("ranks made different numbers of backward passes");
  if (situation.noTokens)
    parts.push_back("the number of tokens is not positive");
  if (parts.empty())
    return "every gradient is finite and arrived, on all ranks alike";
  return llvm::join(parts, " and ");
}

namespace {
/// Numbers that lead to a situation.
struct Draw {
  int64_t backwards; // on most ranks
  int64_t first;     // on rank 0, if they are unequal
  int64_t second;    // on rank 1, if they are unequal and there are more ranks
  int64_t missing;   // on rank 0, if gradients are missing
  double sum;        // over elements, about
  double tokens;     // of all ranks
  double noTokens;   // an invalid number of tokens
};
/// The sum that is not finite, and its value.
struct Infection {
  BaseRef sum; // null: all
  double value;
};
/// The rank that evaluates the outcome: the first, the second or another one.
enum class Viewer { first, second, other };
} // namespace

/// Numbers of backward passes and sizes, on which an outcome must not depend.
/// Some draws have one count that is the mean of the others.
static constexpr Draw kDraws[] = {
    {1, 2, 1, 1, 1.0, 1, 0},           {3, 2, 4, 2, 1e30, 4.5e15, -1},
    {4, 7, 4, 7, 0.0, 0.25, INFINITY}, {7, 1, 13, 1, 1e-40, 1e-300, NAN},
    {2, 16, 3, 5, 1e5, 1e300, 1e-310},
};

/// Whether a sum is one of squares, and so not negative.
static bool isOfSquares(BaseRef sum) {
  ArrayRef<Term> terms = sum->operands[0]->getTerms();
  return llvm::all_of(terms, [](const Term &term) {
    return term.coefficient.numerator >= 0 &&
           llvm::all_of(term.monomial,
                        [](auto factor) { return factor.second % 2 == 0; });
  });
}

/// The values of the bases of an outcome in |situation|.
static std::optional<double> getValue(BaseRef base, Situation situation,
                                      const Draw &draw, Infection infection,
                                      int64_t ranks, Viewer viewer) {
  bool unequal = situation.unequal;
  auto first = double(unequal ? draw.first : draw.backwards);
  auto second = double(unequal && ranks > 2 ? draw.second : draw.backwards);
  auto other = double(draw.backwards);
  switch (base->kind) {
  case BaseKind::sumOver:
    if (situation.nonfinite && (!infection.sum || infection.sum == base))
      return isOfSquares(base) ? std::abs(infection.value) : infection.value;
    return (isOfSquares(base) || base->index % 2 ? 1 : -1) * draw.sum *
           (1 + double(base->index % 1021) / 1024);
  case BaseKind::rankSum: {
    // The sum over the ranks of a power of each rank's count. See sumOverRanks.
    auto [counted, power] = base->operands[0]->getTerms()[0].monomial[0];
    auto exponent = double(power);
    if (counted->kind == BaseKind::missing)
      return situation.missing ? std::pow(double(draw.missing), exponent) : 0;
    double sum = std::pow(first, exponent);
    if (ranks > 1)
      sum += std::pow(second, exponent);
    return sum +
           double(std::max<int64_t>(ranks - 2, 0)) * std::pow(other, exponent);
  }
  case BaseKind::missing:
    return situation.missing ? draw.missing : 0;
  case BaseKind::tokens:
    return situation.noTokens ? draw.noTokens : draw.tokens;
  case BaseKind::symbol:
    if (base->name == kTokens)
      return situation.noTokens ? draw.noTokens : draw.tokens;
    return viewer == Viewer::first    ? first
           : viewer == Viewer::second ? second
                                      : other;
  default:
    return std::nullopt;
  }
}

namespace {
/// The properties of an outcome that decide which numbers are tried.
struct Ingredients {
  bool hasOwnCount = false;  // of backward passes
  BaseRef foreign = nullptr; // what no outcome may depend on
  BaseRef narrow = nullptr;  // a sum in which a finite gradient overflows
};
} // namespace

static bool isTokens(BaseRef base) {
  return base->kind == BaseKind::tokens ||
         (base->kind == BaseKind::symbol && base->name == kTokens);
}

static Ingredients getIngredients(Expr outcome, bool dividesByTokens) {
  Ingredients found;
  visitBases(outcome, [&](BaseRef base) {
    if (base->kind == BaseKind::symbol && base->name == kAccumulation)
      found.hasOwnCount = true;
    else if (isTokens(base) ? !dividesByTokens : base->kind == BaseKind::symbol)
      found.foreign = base;
    else if (base->kind == BaseKind::input || base->kind == BaseKind::old ||
             base->kind == BaseKind::state)
      found.foreign = base;
    else if (base->bits)
      found.narrow = base;
  });
  return found;
}

/// More kinds of sums than this in one outcome are not tried.
static constexpr size_t kMostKinds = 64;

/// One of each kind of sums in |outcome|. Sums of a kind stand in the same
/// places: in the same numbers, with the same power and sign, times the same.
/// So the outcome is the same number whichever of them is not finite.
static SmallVector<BaseRef> findKinds(Expr outcome) {
  // Where a sum stands, as a hash: the number, and its term without the sum.
  llvm::MapVector<BaseRef, std::vector<size_t>> places;
  llvm::DenseSet<Expr> seen;
  SmallVector<Expr> stack{outcome};
  while (!stack.empty()) {
    Expr top = stack.pop_back_val();
    if (!seen.insert(top).second)
      continue;
    for (const Term &term : top->getTerms())
      for (auto [sum, exponent] : term.monomial) {
        if (sum->kind != BaseKind::sumOver) {
          llvm::append_range(stack, sum->operands);
          continue;
        }
        int64_t numerator = term.coefficient.numerator;
        llvm::hash_code place = llvm::hash_combine(
            top->getIndex(), exponent, numerator > 0, numerator < 0);
        for (auto [base, power] : term.monomial)
          if (base != sum)
            place = llvm::hash_combine(place, base->index, power);
        places[sum].push_back(place);
      }
  }
  SmallVector<BaseRef> kinds;
  std::set<std::vector<size_t>> known;
  for (auto &[sum, where] : places) {
    llvm::sort(where);
    if (known.insert(std::move(where)).second)
      kinds.push_back(sum);
  }
  return kinds;
}

/// Parameters whose gradients are squared and summed somewhere in |outcome|.
static llvm::StringSet<> getDomain(Expr outcome) {
  llvm::StringSet<> domain;
  visitBases(outcome, [&](BaseRef base) {
    if (base->kind != BaseKind::sumOver)
      return;
    // A square of the whole gradient, and nothing that could hide it.
    ArrayRef<Term> terms = base->operands[0]->getTerms();
    if (terms.size() != 1 || terms[0].monomial.size() != 1)
      return;
    auto [inner, exponent] = terms[0].monomial[0];
    if (inner->kind == BaseKind::gradient && inner->over == 0 &&
        inner->epoch == Epoch::all && exponent > 0)
      domain.insert(base->name);
  });
  return domain;
}

std::string prove::describeOutcome(double outcome) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", outcome);
  return text;
}

/// The outcome in each situation; nothing, and a report, where it is not one
/// number.
static std::optional<Outcomes> tryOutcome(Proof &proof, Operation *op,
                                          Expr outcome,
                                          const StepSemantics &semantics) {
  bool hasOwnCount =
      getIngredients(outcome, semantics.dividesByTokens).hasOwnCount;
  SmallVector<BaseRef> kinds = findKinds(outcome);
  if (kinds.size() > kMostKinds) {
    proof.report.error(op) << "the outcome treats gradients in " << kinds.size()
                           << " ways, at most " << kMostKinds
                           << " are known to the proof";
    return std::nullopt;
  }
  // All of them, and one of each kind alone.
  SmallVector<Infection> infections;
  for (double value : {double(NAN), double(INFINITY), -double(INFINITY)}) {
    if (value < 0 && llvm::all_of(kinds, isOfSquares))
      continue;
    infections.push_back({nullptr, value});
    for (BaseRef kind : kinds)
      infections.push_back({kind, value});
  }
  Outcomes outcomes = {};
  for (int i = 0; i < kNumSituations; ++i) {
    Situation situation = getSituation(i);
    if (!mayHappen(situation, semantics))
      continue;
    std::optional<double> decided;
    auto isOneNumber = [&](const Draw &draw, Infection infection) {
      for (Viewer viewer : {Viewer::first, Viewer::second, Viewer::other}) {
        if (viewer != Viewer::first &&
            (!hasOwnCount ||
             semantics.getNumRanks() < (viewer == Viewer::second ? 2 : 3)))
          continue;
        double value = proof.algebra.evaluate(outcome, [&](BaseRef base) {
          return getValue(base, situation, draw, infection,
                          semantics.getNumRanks(), viewer);
        });
        if (decided && *decided != value) {
          InFlightDiagnostic diagnostic = proof.report.error(op);
          diagnostic << "where " << describe(situation) << ", the outcome is "
                     << describeOutcome(*decided) << " or "
                     << describeOutcome(value);
          if (situation.nonfinite && infection.sum)
            diagnostic << " (a gradient of '" << infection.sum->name << "')";
          diagnostic << ": it depends on more than that, or ranks disagree";
          return false;
        }
        decided = value;
      }
      return true;
    };
    ArrayRef<Infection> tried = infections;
    for (const Draw &draw : kDraws)
      for (Infection infection :
           situation.nonfinite ? tried : tried.take_front())
        if (!isOneNumber(draw, infection))
          return std::nullopt;
    outcomes[i] = *decided;
  }
  return outcomes;
}

void prove::readOutcome(Proof &proof, Operation *op, Expr outcome,
                        StepSemantics &semantics) {
  Ingredients ingredients = getIngredients(outcome, semantics.dividesByTokens);
  if (ingredients.foreign) {
    proof.report.error(op) << "whether the step is applied depends on "
                           << toString(ingredients.foreign);
    return;
  }
  if (ingredients.narrow) {
    proof.report.error(op) << "whether the step is applied depends on "
                           << toString(ingredients.narrow)
                           << ": gradients that are finite overflow there";
    return;
  }
  std::string unknown = describeUnknown(outcome);
  if (!unknown.empty()) {
    proof.report.error(op) << "ranks may disagree on whether the step is "
                              "applied: the outcome depends on "
                           << unknown;
    return;
  }
  auto [known, isNew] = proof.outcomes.try_emplace(
      {outcome, semantics.getNumRanks(), semantics.allMeet(),
       semantics.dividesByTokens});
  if (isNew) {
    auto outcomes = tryOutcome(proof, op, outcome, semantics);
    if (!outcomes) {
      proof.outcomes.erase(known);
      return;
    }
    known->second = *outcomes;
  }
  semantics.outcomes = known->second;
  // The sum of all squares is one number: it is not finite if one of them is
  // not.
  if (semantics.outcomes[1] == semantics.outcomes[0])
    return;
  llvm::StringSet<> domain = getDomain(outcome);
  for (auto &[name, parameter] : semantics.parameters)
    if (parameter.op.getNumElements() > 0 && !domain.contains(name.getValue()))
      proof.report.error(op)
          << "gradient of '" << name.getValue()
          << "' is not looked at: the step would be applied with one that is "
             "not finite";
}

Expr prove::getOutcome(Algebra &algebra, OutcomeOp op,
                       llvm::function_ref<Expr(Value)> getOperand) {
  Expr zero = algebra.integer(0);
  Expr outcome = zero;
  auto choose = [&](Expr left, Expr right, int64_t number) {
    Expr differs = algebra.symmetric("cmpf une", left, right);
    outcome = algebra.operation("select",
                                {differs, algebra.integer(number), outcome});
  };
  if (op.getNonfinite() != Nonfinite::apply)
    for (Value operand : op.getSums()) {
      Expr sum = getOperand(operand);
      choose(algebra.subtract(sum, sum), zero,
             op.getNonfinite() == Nonfinite::skip ? 1 : 4);
    }
  if (op.getTokens())
    outcome = replaceUnlessDivisor(algebra, getOperand(op.getTokens()),
                                   algebra.integer(5), outcome);
  choose(getOperand(op.getMissing()), zero, 2);
  if (!op.getBackwards())
    return outcome;
  Expr backwards = getOperand(op.getBackwards());
  choose(algebra.multiply(algebra.integer(op.getRanks()),
                          getOperand(op.getSquared())),
         algebra.multiply(backwards, backwards), 3);
  return outcome;
}
