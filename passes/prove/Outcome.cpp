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

#include "dialect/zero/Outcome.h"
#include "dialect/zero/StorageTypes.h"
#include "passes/prove/Example.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"

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

bool prove::maySkip(const StepSemantics &semantics) {
  for (int i = 0; i < kNumSituations; ++i)
    if (mayHappen(getSituation(i), semantics) &&
        semantics.outcomes[i] == double(Outcome::skipped_nonfinite))
      return true;
  return false;
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
/// The properties of an outcome that decide which numbers are tried.
struct Ingredients {
  BaseRef foreign = nullptr; // what no outcome may depend on
  BaseRef narrow = nullptr;  // a sum in which a finite gradient overflows
};
} // namespace

bool prove::isTokens(BaseRef base) {
  return base->kind == BaseKind::tokens ||
         (base->kind == BaseKind::symbol && base->name == kTokens);
}

/// Whether a gradient that is finite makes the sum |base| infinite: squares are
/// taken in a narrow type, or gradients rounded to one with few exponents.
static bool overflowsInSum(BaseRef base) {
  constexpr unsigned kWide = 8; // as many bits of an exponent as f32 has
  return base->value != 0 ||
         (base->bits != 0 && getExponentBits(base->bits) < kWide);
}

static Ingredients getIngredients(Expr outcome, bool dividesByTokens) {
  Ingredients found;
  visitBases(outcome, [&](BaseRef base) {
    if (base->kind == BaseKind::symbol && base->name == kAccumulation)
      return;
    if (isTokens(base) ? !dividesByTokens : base->kind == BaseKind::symbol)
      found.foreign = base;
    else if (base->kind == BaseKind::input || base->kind == BaseKind::old ||
             base->kind == BaseKind::state || base->kind == BaseKind::delivered)
      found.foreign = base;
    else if (base->bits)
      found.narrow = base;
  });
  return found;
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
    // A magnitude is not finite if the number is not.
    if (inner->kind == BaseKind::operation && inner->name == "absf" &&
        inner->operands[0]->asBase())
      inner = inner->operands[0]->asBase();
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

void prove::readOutcome(Proof &proof, Operation *op, const Number &number,
                        StepSemantics &semantics) {
  Expr outcome = number.expr;
  Ingredients ingredients = getIngredients(outcome, semantics.dividesByTokens);
  if (ingredients.foreign) {
    auto error = proof.report.consequence(op);
    error << "whether the step is applied depends on "
          << toString(ingredients.foreign);
    error.attach(findDependence(
        proof.algebra, outcome, semantics.getNumRanks(),
        [&](BaseRef base) { return base == ingredients.foreign; }));
    return;
  }
  if (ingredients.narrow) {
    auto error = proof.report.consequence(op);
    bool overflows = overflowsInSum(ingredients.narrow);
    error << "whether the step is applied depends on "
          << toString(ingredients.narrow)
          << (overflows ? ": gradients that are finite overflow there"
                        : ": gradients are rounded before they are summed");
    error.attach(overflows ? findOverflow(ingredients.narrow->bits)
                           : findRounding(ingredients.narrow->bits));
    return;
  }
  std::string unknown = describeUnknown(outcome);
  if (!unknown.empty()) {
    auto error = proof.report.consequence(op);
    error << "ranks may disagree on whether the step is applied: the outcome "
             "depends on "
          << unknown;
    error.attach(
        findDependence(proof.algebra, outcome, semantics.getNumRanks()));
    return;
  }
  auto [known, isNew] = proof.outcomes.try_emplace(
      {outcome, semantics.getNumRanks(), semantics.allMeet(),
       semantics.dividesByTokens});
  if (isNew) {
    auto outcomes = decideOutcome(proof, op, outcome, semantics);
    if (!outcomes) {
      proof.outcomes.erase(known);
      return;
    }
    known->second = *outcomes;
  }
  semantics.outcomes = known->second;
  semantics.rounding = number.rounding;
  semantics.decidedBy = number.roundings;
  // The sum of all squares is one number: it is not finite if one of them is
  // not.
  if (semantics.outcomes[1] == semantics.outcomes[0])
    return;
  llvm::StringSet<> domain = getDomain(outcome);
  for (auto &[name, parameter] : semantics.parameters)
    if (parameter.op.getNumElements() > 0 &&
        !domain.contains(name.getValue())) {
      auto error = proof.report.consequence(op);
      error << "gradient of '" << name.getValue()
            << "' is not looked at: the step would be applied with one that is "
               "not finite";
      error.attach("counterexample: a gradient of '" + name.str() +
                   "' is nan; the outcome is " +
                   describeOutcome(semantics.outcomes[0]));
    }
}

Expr prove::getOutcome(Algebra &algebra, OutcomeOp op,
                       llvm::function_ref<Expr(Value)> getOperand) {
  Expr zero = algebra.integer(0);
  Expr outcome = zero;
  auto choose = [&](Expr left, Expr right, Outcome chosen) {
    Expr differs = algebra.symmetric("cmpf une", left, right);
    outcome = algebra.operation(
        "select", {differs, algebra.integer(int64_t(chosen)), outcome});
  };
  if (op.getNonfinite() != Nonfinite::apply)
    for (Value operand : op.getSums()) {
      Expr sum = getOperand(operand);
      choose(algebra.subtract(sum, sum), zero,
             getNonfiniteOutcome(op.getNonfinite()));
    }
  if (op.getTokens())
    outcome = replaceUnlessDivisor(
        algebra, getOperand(op.getTokens()),
        algebra.integer(int64_t(Outcome::refused_no_tokens)), outcome);
  choose(getOperand(op.getMissing()), zero, Outcome::refused_missing_gradient);
  if (!op.getBackwards())
    return outcome;
  Expr backwards = getOperand(op.getBackwards());
  choose(algebra.multiply(algebra.integer(op.getRanks()),
                          getOperand(op.getSquared())),
         algebra.multiply(backwards, backwards),
         Outcome::refused_unequal_backwards);
  return outcome;
}
