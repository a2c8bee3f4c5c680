//===- AlgebraWalks.cpp - What a polynomial is made of --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Algebra.h"

#include "llvm/ADT/DenseSet.h"

#include <cmath>

using namespace zero;
using namespace zero::prove;

bool prove::isSymmetric(llvm::StringRef name) {
  static constexpr llvm::StringLiteral names[] = {
      "addf",     "mulf",     "minimumf", "minnumf",  "maximumf",
      "maxnumf",  "andi",     "ori",      "cmpf oeq", "cmpf one",
      "cmpf ueq", "cmpf une", "cmpf ord", "cmpf uno"};
  return llvm::is_contained(names, name);
}

/// The operation |name| as it would be made of |operands| at once.
static Expr operate(Algebra &algebra, llvm::StringRef name,
                    llvm::ArrayRef<Expr> operands) {
  if (name == "sqrt")
    return algebra.squareRoot(operands[0]);
  if (name == "inverse")
    return algebra.divide(algebra.integer(1), operands[0]);
  if (name == "divf")
    return algebra.overItself(operands[0]);
  if (name == "subf")
    return algebra.minusItself(operands[0]);
  if (name == "absf")
    return algebra.magnitude(operands[0]);
  if (name == "sum")
    return operands[0];
  if (name == "select" && operands[1] == operands[2])
    return operands[1];
  return operands.size() == 2 && isSymmetric(name)
             ? algebra.symmetric(name, operands[0], operands[1])
             : algebra.operation(name, operands);
}

Expr Substitution::replace(BaseRef base) {
  if (auto it = replacements.find(base); it != replacements.end())
    return it->second;
  Expr replacement = function(base);
  if (replacement && replacement->asBase() == base)
    return replacements[base] = nullptr;
  if (replacement) {
    // |base| itself is not replaced again: its replacement is not known yet.
    replacement = apply(replacement);
  } else {
    Base copy = *base;
    for (Expr &operand : copy.operands)
      operand = apply(operand);
    if (copy.operands != base->operands)
      replacement = copy.kind == BaseKind::operation
                        ? operate(algebra, copy.name, copy.operands)
                        : algebra.base(std::move(copy));
  }
  return replacements[base] = replacement;
}

Expr Substitution::apply(Expr a) {
  if (auto it = known.find(a); it != known.end())
    return it->second;
  bool same = true;
  llvm::SmallVector<Expr> addends;
  for (const Term &term : a->getTerms()) {
    Expr product = algebra.rational(term.coefficient);
    for (auto [base, exponent] : term.monomial) {
      Expr replacement = replace(base);
      same &= !replacement;
      product = algebra.multiply(
          product, replacement ? algebra.power(replacement, exponent)
                               : algebra.product({1, 1}, {{base, exponent}}));
    }
    addends.push_back(product);
  }
  Expr result = same ? a : algebra.sum(addends);
  return known[a] = finish ? finish(result) : result;
}

Expr Algebra::substitute(Expr a, llvm::function_ref<Expr(BaseRef)> function) {
  return Substitution(*this, function).apply(a);
}

static double evaluateOperation(const Base &base, llvm::ArrayRef<double> x) {
  llvm::StringRef name = base.name;
  if (name == "inverse")
    return 1 / x[0];
  if (name == "sqrt")
    return std::sqrt(x[0]);
  if (name == "sum")
    return x[0];
  if (name == "divf")
    return x[0] / x[1];
  if (name == "subf")
    return x[0] - x[1];
  if (name == "addf")
    return x[0] + x[1];
  if (name == "mulf")
    return x[0] * x[1];
  if (name == "absf")
    return std::abs(x[0]);
  if (name == "copysign")
    return std::copysign(x[0], x[1]);
  if (name == "select")
    return x[0] != 0 ? x[1] : x[2];
  if (name == "andi")
    return x[0] != 0 && x[1] != 0;
  if (name == "ori")
    return x[0] != 0 || x[1] != 0;
  bool unordered = std::isnan(x[0]) || (x.size() > 1 && std::isnan(x[1]));
  if (name == "minimumf")
    return unordered ? NAN : std::min(x[0], x[1]);
  if (name == "maximumf")
    return unordered ? NAN : std::max(x[0], x[1]);
  if (name == "minnumf")
    return std::fmin(x[0], x[1]);
  if (name == "maxnumf")
    return std::fmax(x[0], x[1]);
  if (name.consume_front("cmpf ")) {
    if (name == "ord")
      return !unordered;
    if (name == "uno")
      return unordered;
    bool result = name.ends_with("eq")   ? x[0] == x[1]
                  : name.ends_with("ne") ? x[0] != x[1]
                  : name.ends_with("gt") ? x[0] > x[1]
                  : name.ends_with("ge") ? x[0] >= x[1]
                  : name.ends_with("lt") ? x[0] < x[1]
                  : name.ends_with("le") ? x[0] <= x[1]
                                         : name == "true";
    return unordered ? name.starts_with("u") || name == "true" : result;
  }
  return NAN;
}

double Algebra::evaluateBase(
    BaseRef base, llvm::function_ref<std::optional<double>(BaseRef)> function,
    llvm::DenseMap<const void *, double> &known) {
  if (auto given = function(base))
    return *given;
  if (base->kind == BaseKind::constant)
    return base->value;
  if (base->kind != BaseKind::operation)
    return NAN;
  if (auto it = known.find(base); it != known.end())
    return it->second;
  llvm::SmallVector<double> operands;
  for (Expr operand : base->operands)
    operands.push_back(evaluate(operand, function, known));
  return known[base] = evaluateOperation(*base, operands);
}

double
Algebra::evaluate(Expr a,
                  llvm::function_ref<std::optional<double>(BaseRef)> function,
                  llvm::DenseMap<const void *, double> &known) {
  if (auto it = known.find(a); it != known.end())
    return it->second;
  double sum = 0;
  for (const Term &term : a->terms) {
    double factor = 1;
    for (auto [base, exponent] : term.monomial) {
      double value = evaluateBase(base, function, known);
      factor *= exponent == 1 ? value : std::pow(value, double(exponent));
    }
    // The coefficient comes last: 0 times what overflows is nan.
    sum += factor * term.coefficient.asDouble();
  }
  return known[a] = sum;
}

double
Algebra::evaluate(Expr a,
                  llvm::function_ref<std::optional<double>(BaseRef)> function) {
  llvm::DenseMap<const void *, double> known;
  return evaluate(a, function, known);
}

void prove::visitBases(Expr a, llvm::function_ref<void(BaseRef)> visit,
                       llvm::function_ref<bool(BaseRef)> enter) {
  llvm::DenseSet<const void *> seen;
  llvm::SmallVector<Expr> stack{a};
  while (!stack.empty()) {
    Expr top = stack.pop_back_val();
    if (!seen.insert(top).second)
      continue;
    for (const Term &term : top->getTerms())
      for (auto [ref, exponent] : term.monomial)
        if (seen.insert(ref).second) {
          visit(ref);
          if (enter(ref))
            llvm::append_range(stack, ref->operands);
        }
  }
}

bool prove::isConstant(Expr a) {
  constexpr unsigned kDeep = 8;
  return a->getDepth() <= kDeep &&
         llvm::all_of(a->getTerms(), [](const Term &term) {
           return llvm::all_of(term.monomial, [](auto factor) {
             BaseRef base = factor.first;
             return base->kind == BaseKind::constant ||
                    (base->kind == BaseKind::operation &&
                     llvm::all_of(base->operands, isConstant));
           });
         });
}

double prove::evaluateConstant(Algebra &algebra, Expr a) {
  return algebra.evaluate(
      a, [](BaseRef) -> std::optional<double> { return std::nullopt; });
}
