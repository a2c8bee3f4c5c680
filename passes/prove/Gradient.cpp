//===- Gradient.cpp - Which gradients a number contains -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Gradient.h"

#include "passes/prove/Example.h"

#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// The gradient in which a term is linear: it occurs once, and the other
/// factors have no gradient. Only then is the sum of such terms over backward
/// passes the term of the summed gradient. Null if there is no such gradient.
static BaseRef getLinearGradient(const Term &term) {
  BaseRef found = nullptr;
  for (auto [base, exponent] : term.monomial) {
    if (base->kind != BaseKind::gradient) {
      if (base->hasGradient)
        return nullptr;
      continue;
    }
    if (found || exponent != 1)
      return nullptr;
    found = base;
  }
  return found;
}

/// |a| with gradients of other epochs; |epochs| maps each.
static Expr rename(Algebra &algebra, Expr a,
                   llvm::function_ref<Epoch(Epoch)> epochs) {
  return algebra.substitute(a, [&](BaseRef base) -> Expr {
    if (base->kind != BaseKind::gradient || epochs(base->epoch) == base->epoch)
      return nullptr;
    return algebra.gradient(epochs(base->epoch), base->over);
  });
}

static Epoch closeFirst(Epoch epoch) {
  return epoch == Epoch::current ? Epoch::earlier : epoch;
}

/// The terms of |a| that are linear in a gradient of |epoch|, as of |whole|.
static Expr selectLinear(Algebra &algebra, Expr a, Epoch epoch, AxisSet over,
                         Epoch whole) {
  Expr selected = algebra.mapTerms(a, [&](const Term &term) {
    BaseRef base = getLinearGradient(term);
    bool wanted = base && base->epoch == epoch && base->over == over;
    return wanted ? algebra.product(term.coefficient, term.monomial)
                  : algebra.integer(0);
  });
  return rename(algebra, selected,
                [&](Epoch old) { return old == epoch ? whole : old; });
}

/// |a| with terms of |part| and of |rest| joined to one term of |whole|, if
/// both have the same factor. |other| maps every other term.
static Expr join(Algebra &algebra, Expr a, Epoch part, Epoch rest, Epoch whole,
                 llvm::function_ref<Expr(Expr)> other) {
  std::map<AxisSet, bool> known;
  auto joins = [&](AxisSet over) {
    auto [it, isNew] = known.try_emplace(over);
    if (isNew)
      it->second = selectLinear(algebra, a, part, over, whole) ==
                   selectLinear(algebra, a, rest, over, whole);
    return it->second;
  };
  return algebra.mapTerms(a, [&](const Term &term) {
    Expr each = algebra.product(term.coefficient, term.monomial);
    BaseRef base = getLinearGradient(term);
    if (base && joins(base->over)) {
      if (base->epoch == part)
        return algebra.integer(0);
      if (base->epoch == rest)
        return rename(algebra, each,
                      [&](Epoch old) { return old == rest ? whole : old; });
    }
    return other(each);
  });
}

Expr prove::joinLast(Algebra &algebra, Expr a, Epoch whole) {
  // Terms that are not linear never join, and most numbers have no such
  // gradient.
  auto isOfLast = [](const Term &term) {
    BaseRef base = getLinearGradient(term);
    return base && base->epoch == Epoch::last;
  };
  if (llvm::none_of(a->getTerms(), isOfLast))
    return a;
  return join(algebra, a, Epoch::last, Epoch::former, whole,
              [](Expr each) { return each; });
}

Expr prove::closeBackward(Algebra &algebra, Expr a, bool isFirst) {
  if (isFirst)
    return rename(algebra, a, closeFirst);
  auto close = [&](Expr each) {
    // The last backward pass is now one of the earlier ones.
    each = algebra.substitute(each, [&](BaseRef base) -> Expr {
      bool isOld = base->kind == BaseKind::gradient &&
                   (base->epoch == Epoch::last || base->epoch == Epoch::former);
      return isOld
                 ? algebra.undefined("gradients of some of the backward passes")
                 : nullptr;
    });
    return rename(algebra, each, [](Epoch epoch) {
      return epoch == Epoch::current   ? Epoch::last
             : epoch == Epoch::earlier ? Epoch::former
                                       : epoch;
    });
  };
  return join(algebra, a, Epoch::current, Epoch::earlier, Epoch::earlier,
              close);
}

Expr prove::closeStep(Algebra &algebra, Expr a) {
  return rename(algebra, a, [](Epoch epoch) {
    return epoch == Epoch::earlier ? Epoch::all : epoch;
  });
}

Expr prove::sumOverBackwards(Algebra &algebra, Expr a) {
  return algebra.mapTerms(a, [&](const Term &term) {
    Expr each = algebra.product(term.coefficient, term.monomial);
    if (getLinearGradient(term))
      return closeStep(algebra, rename(algebra, each, closeFirst));
    if (each->hasGradient())
      return algebra.operation("sum over backward passes", {each});
    return algebra.multiply(each, algebra.symbol(kAccumulation));
  });
}

Expr prove::withoutCurrent(Algebra &algebra, Expr a) {
  return algebra.mapTerms(a, [&](const Term &term) -> Expr {
    bool vanishes = false;
    for (auto [base, exponent] : term.monomial) {
      if (base->kind == BaseKind::gradient && base->epoch == Epoch::current) {
        vanishes |= exponent > 0;
        continue;
      }
      bool depends = false;
      for (Expr operand : base->operands)
        visitBases(operand, [&](BaseRef inner) {
          depends |= inner->kind == BaseKind::gradient &&
                     inner->epoch == Epoch::current;
        });
      if (depends)
        return nullptr;
    }
    return vanishes ? algebra.integer(0)
                    : algebra.product(term.coefficient, term.monomial);
  });
}

bool prove::isWholeGradient(Algebra &algebra, Expr a, Expr *factor) {
  if (a->getTerms().size() != 1)
    return false;
  const Term &term = a->getTerms()[0];
  Monomial rest;
  bool found = false;
  for (auto [base, exponent] : term.monomial) {
    if (!base->isElement) {
      rest.push_back({base, exponent});
      continue;
    }
    if (found || exponent != 1 || base->kind != BaseKind::gradient ||
        base->epoch != Epoch::all || base->over)
      return false;
    found = true;
  }
  if (factor)
    *factor = algebra.product(term.coefficient, rest);
  return found;
}

std::string prove::explainGradient(Expr a, const MeshAxes &axes) {
  bool any = false, own = false, summed = false;
  bool last = false, former = false, all = false;
  AxisSet missing = 0;
  std::string undefined;
  visitBases(a, [&](BaseRef base) {
    if (base->kind == BaseKind::undefined)
      undefined = base->name;
    if (base->kind != BaseKind::gradient)
      return;
    any = true;
    (base->over ? own : summed) = true;
    missing |= base->over;
    last |= base->epoch == Epoch::last || base->epoch == Epoch::current;
    former |= base->epoch == Epoch::former;
    all |= base->epoch == Epoch::all;
  });
  std::string text;
  llvm::raw_string_ostream os(text);
  if (!undefined.empty())
    os << "it reads " << undefined;
  else if (!any)
    os << "no gradient is in it";
  else if (last && !former && !all)
    os << "what earlier backward passes left is lost; a step of 2 backward "
          "passes shows it";
  else if (former && !last && !all)
    os << "the last backward pass is lost; a step of 2 backward passes shows "
          "it";
  else if (own && summed)
    os << "a rank's own share is added to a sum over ranks: rank 1 applies its "
          "own whole and none of rank 0's";
  else if (own && missing == axes.getAll())
    os << "ranks never exchange it: each applies its own share";
  else if (own)
    os << "it is never summed over " << axes.describe(missing);
  else if (last || former)
    os << "backward passes do not count alike; a step of 2 backward passes "
          "shows it";
  else
    os << "it does not count once";
  return text;
}

/// Whether |factor| is a product of clip coefficients, and the parameters that
/// their norms count.
static const Clipping &getClipping(Proof &proof, Expr factor) {
  auto [it, isNew] = proof.clippings.try_emplace(factor);
  Clipping &clipping = it->second;
  if (!isNew)
    return clipping;
  ArrayRef<Term> terms = factor->getTerms();
  clipping.isClipping = terms.size() == 1 &&
                        terms[0].coefficient == Rational{1, 1} &&
                        llvm::all_of(terms[0].monomial, [](auto factor) {
                          auto [base, exponent] = factor;
                          return base->kind == BaseKind::operation &&
                                 base->name == "minimumf" && exponent > 0;
                        });
  llvm::DenseSet<Expr> seen;
  SmallVector<Expr> stack{factor};
  while (!stack.empty()) {
    Expr top = stack.pop_back_val();
    if (!seen.insert(top).second)
      continue;
    std::optional<Rational> common;
    for (const Term &term : top->getTerms())
      for (auto [base, power] : term.monomial) {
        if (base->kind != BaseKind::sumOver) {
          llvm::append_range(stack, base->operands);
          continue;
        }
        bool once = power == 1 && base->over == 0 &&
                    (!common || *common == term.coefficient);
        common = term.coefficient;
        (once ? clipping.counted : clipping.miscounted).insert(base->name);
      }
  }
  return clipping;
}

void prove::checkGradient(Proof &proof, Operation *op,
                          const ParameterSemantics &parameter,
                          const MeshAxes &axes, Number gradient) {
  ParameterOp parameterOp = parameter.op;
  StringRef name = parameterOp.getSymName();
  Algebra &algebra = proof.algebra;
  Expr factor = nullptr;
  if (!isWholeGradient(algebra, gradient.expr, &factor)) {
    Expr expected = algebra.multiply(parameter.normalization,
                                     algebra.gradient(Epoch::all, 0));
    InFlightDiagnostic diagnostic = proof.report.error(op);
    diagnostic << "gradient of '" << name << "' reaches its update as "
               << toString(gradient.expr) << ", expected " << toString(expected)
               << ": " << explainGradient(gradient.expr, axes);
    Report::attach(diagnostic, op->getLoc(),
                   findExample(algebra, gradient.expr, expected, 2));
    return;
  }
  Expr ratio = algebra.divide(factor, parameter.normalization);
  if (ratio != algebra.integer(1)) {
    const Clipping &clipping = getClipping(proof, ratio);
    if (!clipping.isClipping)
      proof.report.error(op)
          << "gradient of '" << name << "' counts " << toString(factor)
          << ", the step declares " << toString(parameter.normalization);
    else if (clipping.miscounted.contains(name))
      proof.report.error(op) << "gradient of '" << name
                             << "' is clipped by a norm in which not every "
                                "element counts once: "
                             << toString(ratio);
    else if (!clipping.counted.contains(name) && parameter.elements > 0)
      proof.report.error(op)
          << "gradient of '" << name
          << "' is clipped by a norm in which it does not count: "
          << toString(ratio);
  }
  Precision narrowest = gradient.roundings.getNarrowest(SourceKind::gradient);
  if (!narrowest.holds(parameter.kept))
    proof.report.error(op) << "gradient of '" << name << "' went through "
                           << narrowest.describe() << ", the step declares "
                           << parameter.kept.describe();
}

/// The gradients that |a| is made of, other than those of norms.
static ArrayRef<BaseRef> findGradients(Proof &proof, Expr a) {
  auto [it, isNew] = proof.gradients.try_emplace(a);
  if (!isNew)
    return it->second;
  llvm::SmallSetVector<BaseRef, 4> found;
  SmallVector<Expr> stack{a};
  llvm::DenseSet<Expr> seen;
  while (!stack.empty()) {
    Expr top = stack.pop_back_val();
    if (!seen.insert(top).second)
      continue;
    for (const Term &term : top->getTerms()) {
      if (term.coefficient.numerator == 0)
        continue;
      for (auto [base, exponent] : term.monomial) {
        if (base->kind == BaseKind::gradient)
          found.insert(base);
        else if (base->kind == BaseKind::operation)
          llvm::append_range(stack, base->operands);
      }
    }
  }
  llvm::append_range(it->second, found);
  return it->second;
}

void prove::checkArrived(Proof &proof, const ParameterSemantics &parameter,
                         const StepSemantics &semantics) {
  ParameterOp op = parameter.op;
  Operation *writer = parameter.writer ? parameter.writer : semantics.step;
  for (const IntervalSemantics &interval : parameter.intervals) {
    llvm::SmallSetVector<BaseRef, 4> found;
    bool isKnown = true;
    for (auto &[role, number] : interval.roles) {
      for (BaseRef base : findGradients(proof, number.expr))
        found.insert(base);
      isKnown &= !number.expr->isUndefined();
    }
    // A group may be frozen: a step to compare with says so.
    if (found.empty() && isKnown && !proof.hasReference) {
      proof.report.error(writer)
          << "gradient of '" << op.getSymName() << "' never reaches its update";
      return;
    }
    if (llvm::all_of(found, [](BaseRef base) {
          return base->epoch == Epoch::all && base->over == 0;
        }))
      continue;
    InFlightDiagnostic diagnostic = proof.report.error(writer);
    diagnostic << "gradient of '" << op.getSymName()
               << "' reaches its update as ";
    Expr sum = proof.algebra.integer(0);
    llvm::interleave(
        found,
        [&](BaseRef base) {
          sum = proof.algebra.add(sum,
                                  proof.algebra.product({1, 1}, {{base, 1}}));
          diagnostic << toString(base);
        },
        [&] { diagnostic << " and "; });
    Expr expected = proof.algebra.gradient(Epoch::all, 0);
    diagnostic << ", expected " << toString(expected) << ": "
               << explainGradient(sum, semantics.axes);
    std::string example =
        findExample(proof.algebra, sum, expected, semantics.getNumRanks());
    // Their sum may be right, and each of them is not.
    for (BaseRef base : found)
      if (example.empty())
        example = findExample(proof.algebra,
                              proof.algebra.product({1, 1}, {{base, 1}}),
                              expected, semantics.getNumRanks());
    Report::attach(diagnostic, writer->getLoc(), example);
    return;
  }
}
