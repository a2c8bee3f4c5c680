//===- ResultsIfNotApplied.cpp - What skipped and refused steps report ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradients of a step that is not applied may not be finite, and the number
// of tokens of a refused step is any number. So the facts of an applied step do
// not hold, and results are compared by pointers. Results that are equal by
// facts must take no operation for granted that tells such numbers from others.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Example.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// Whether |base| may be a number where an operand is nan, or nan where its
/// operands are infinite or 0.
static bool tellsNonfinite(BaseRef base) {
  return base->kind == BaseKind::operation &&
         (llvm::is_contained({"select", "minnumf", "maxnumf", "divf"},
                             base->name) ||
          StringRef(base->name).starts_with("cmpf "));
}

/// |applied| is the result of the applied step to which |a| belongs. It is
/// equal to that of the step to which |expected| belongs.
static bool areEqual(Algebra &algebra, Expr a, Expr applied, Expr expected) {
  if (a == expected)
    return true;
  Expr withTokens = algebra.substitute(a, [&](BaseRef base) -> Expr {
    return base->own == 0 && base->kind == BaseKind::tokens
               ? algebra.symbol(kTokens)
               : nullptr;
  });
  // The outcome selects what is reported.
  if (withTokens != applied)
    return false;
  llvm::DenseSet<BaseRef> known;
  visitBases(expected, [&](BaseRef base) { known.insert(base); });
  bool isKnown = true;
  visitBases(a, [&](BaseRef base) {
    isKnown &= known.contains(base) || !tellsNonfinite(base);
  });
  return isKnown;
}

void prove::compareResultsIfNotApplied(Proof &proof, const StepSemantics &first,
                                       const StepSemantics &second) {
  using Results = ArrayRef<std::pair<std::string, Number>>;
  auto compare = [&](StringRef step, Results expected, Results actual) {
    for (auto [a, b, applied] :
         llvm::zip_equal(expected, actual, second.results)) {
      if (::areEqual(proof.algebra, b.second.expr, applied.second.expr,
                     a.second.expr))
        continue;
      std::string example = findExample(proof.algebra, b.second.expr,
                                        a.second.expr, second.getNumRanks());
      InFlightDiagnostic diagnostic = proof.report.error(second.step);
      diagnostic << "result '" << b.first << "' of a " << step << " step is "
                 << toString(b.second.expr, a.second.expr)
                 << (example.empty() ? ", not shown equal to " : ", expected ")
                 << toString(a.second.expr, b.second.expr);
      Report::attach(diagnostic, second.step->getLoc(), example);
    }
  };
  if (maySkip(first))
    compare("skipped", first.skippedResults, second.skippedResults);
  compare("refused", first.refusedResults, second.refusedResults);
}
