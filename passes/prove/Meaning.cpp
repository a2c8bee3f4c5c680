//===- Meaning.cpp - What readers of all phases share ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Meaning.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

const Number *IntervalMeaning::find(StringRef role) const {
  for (auto &[name, number] : roles)
    if (name == role)
      return &number;
  return nullptr;
}

bool prove::readMesh(Proof &proof, Operation *step, MeshOp mesh,
                     Meaning &meaning) {
  if (!mesh) {
    proof.report.error(step) << "is on no mesh of this module";
    return false;
  }
  meaning.step = step;
  meaning.ranks = mesh.getNumRanks();
  // A sum over an axis is read as one over all ranks.
  int64_t longAxes =
      llvm::count_if(mesh.getAxes().getAsRange<MeshAxisAttr>(),
                     [](MeshAxisAttr axis) { return axis.getSize() > 1; });
  if (longAxes <= 1)
    return true;
  InFlightDiagnostic diagnostic = proof.report.error(step);
  diagnostic << "is on a mesh with " << longAxes
             << " axes of more than one rank, the proof knows meshes with one";
  diagnostic.attachNote(mesh.getLoc()) << "mesh is declared here";
  return false;
}

Expr prove::getMonomial(Algebra &algebra, MeshOp mesh,
                        ArrayRef<ScaleFactor> factors) {
  Expr product = algebra.integer(1);
  for (const ScaleFactor &factor : factors) {
    Expr base;
    if (auto size = mesh.getAxisSize(factor.symbol.getValue()))
      base = algebra.integer(*size);
    else
      base = algebra.symbol(factor.symbol.getValue());
    product = algebra.multiply(product, algebra.power(base, factor.exponent));
  }
  return product;
}

/// Whether ranks may have different numbers for |base|, the number of their
/// backwards among them.
static bool differsPerRank(BaseRef base) {
  if (base->kind == BaseKind::rankSum)
    return false;
  return base->isOwn ||
         (base->kind == BaseKind::symbol && base->name == kAccumulation) ||
         llvm::any_of(base->operands, [](Expr operand) {
           bool differs = false;
           for (const Term &term : operand->getTerms())
             for (auto [inner, exponent] : term.monomial)
               differs |= differsPerRank(inner);
           return differs;
         });
}

/// The sum over the ranks of what they have in |term|; null if it is not known.
static Expr sumOverRanks(Algebra &algebra, const Term &term, int64_t ranks) {
  Expr own = nullptr;
  Monomial rest;
  for (auto [base, exponent] : term.monomial) {
    bool isAddend =
        (base->kind == BaseKind::gradient || base->kind == BaseKind::sumOver) &&
        !base->summed;
    bool isCount =
        base->kind == BaseKind::missing ||
        (base->kind == BaseKind::symbol && base->name == kAccumulation);
    if (!isAddend && !isCount) {
      if (differsPerRank(base))
        return nullptr;
      rest.push_back({base, exponent});
      continue;
    }
    // A product of two that differ per rank is no product of their sums.
    if (own || (isAddend && exponent != 1) || exponent < 1)
      return nullptr;
    if (isAddend) {
      Base summed = *base;
      summed.summed = true;
      own = algebra.base(std::move(summed));
    } else if (ranks > 1) {
      own = algebra.base({BaseKind::rankSum,
                          "",
                          Epoch::all,
                          false,
                          0,
                          {algebra.product({1, 1}, {{base, exponent}})}});
    } else {
      own = algebra.product({1, 1}, {{base, exponent}});
    }
  }
  if (!own)
    own = algebra.integer(ranks);
  return algebra.multiply(own, algebra.product(term.coefficient, rest));
}

Expr prove::sumOverRanks(Algebra &algebra, Expr a, int64_t ranks) {
  Expr sum = algebra.mapTerms(a, [&](const Term &term) {
    return ::sumOverRanks(algebra, term, ranks);
  });
  return sum ? sum
             : algebra.undefined(
                   "a sum over ranks of numbers that are no shares of a sum");
}

Expr prove::sumOverElements(Algebra &algebra, Expr element, StringRef parameter,
                            bool summed, Precision computedIn) {
  unsigned bits = computedIn.mantissa;
  constexpr unsigned kF64Bits = 53;
  Expr sum = algebra.mapTerms(element, [&](const Term &term) {
    Monomial scalars, elements;
    for (auto factor : term.monomial)
      (factor.first->isElement ? elements : scalars).push_back(factor);
    Expr each = algebra.product({1, 1}, elements);
    return algebra.multiply(algebra.product(term.coefficient, scalars),
                            algebra.base({BaseKind::sumOver,
                                          parameter.str(),
                                          Epoch::all,
                                          summed,
                                          0,
                                          {each},
                                          bits < kF64Bits ? bits : 0}));
  });
  return sum;
}

std::string prove::describeUnknown(Expr a, int64_t ranks) {
  std::string found;
  bool own = a->isOwn() && ranks > 1;
  if (!a->isUndefined() && !own)
    return found;
  visitBases(a, [&](BaseRef base) {
    if (base->kind == BaseKind::undefined)
      found = base->name;
    else if (found.empty() && !a->isUndefined() && base->isOwn &&
             llvm::none_of(base->operands,
                           [](Expr operand) { return operand->isOwn(); }))
      found = "what one rank alone knows, " + toString(base);
  });
  return found;
}

std::optional<Meaning> prove::readMeaning(Proof &proof, ModuleOp module) {
  auto steps = llvm::to_vector(module.getOps<StepOp>());
  auto programs = llvm::to_vector(module.getOps<zrt::ProgramOp>());
  if (steps.size() + programs.size() != 1) {
    proof.report.error(module) << "one step can be proved at a time, found "
                               << steps.size() + programs.size();
    return std::nullopt;
  }
  return steps.empty() ? readProgram(proof, programs.front())
                       : readStep(proof, steps.front());
}
