//===- AlgebraPrint.cpp - Polynomials in a reader's words -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Algebra.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace zero;
using namespace zero::prove;

/// Longer sums are cut, since a norm has one term per parameter. Deeply nested
/// sums are cut, too: they are the same in most numbers of a step.
static constexpr size_t kMostTerms = 4;
static constexpr int kMostDepth = 3;

static void print(llvm::raw_ostream &os, Expr a, int depth);

static void printBase(llvm::raw_ostream &os, const Base &base, int depth) {
  switch (base.kind) {
  case BaseKind::symbol:
  case BaseKind::input:
  case BaseKind::tokens:
    os << (base.over ? "a rank's share of " : "") << base.name;
    return;
  case BaseKind::old:
    os << "old '" << base.name << "'";
    return;
  case BaseKind::constant:
    os << llvm::format("%.9g", base.value);
    return;
  case BaseKind::missing:
    os << "missing gradients";
    return;
  case BaseKind::gradient: {
    static constexpr llvm::StringLiteral words[] = {
        "this backward pass", "the earlier backward passes",
        "all backward passes but the last", "the last backward pass",
        "all backward passes"};
    os << "(gradient of " << words[static_cast<int>(base.epoch)] << ", "
       << (base.over == 0      ? "summed over ranks"
           : base.name.empty() ? "this rank's own share"
                               : "not yet summed over " + base.name)
       << ")";
    return;
  }
  case BaseKind::state:
    os << "old " << base.name;
    return;
  case BaseKind::undefined:
    os << base.name;
    return;
  case BaseKind::sumOver:
    os << "sum over " << (base.over ? "this rank's slice of " : "") << base.name
       << " of (";
    break;
  case BaseKind::rankSum:
    os << "sum over " << (base.over ? "some of the ranks" : "ranks") << " of (";
    break;
  case BaseKind::once:
    os << "(1 on the first rank, 0 on others)";
    return;
  case BaseKind::operation:
    os << base.name << "(";
    break;
  }
  llvm::interleaveComma(base.operands, os,
                        [&](Expr operand) { ::print(os, operand, depth + 1); });
  os << ")";
  if (base.bits)
    os << " taken in "
       << (base.bits == 24   ? "f32"
           : base.bits == 11 ? "f16"
                             : "bf16");
}

static void print(llvm::raw_ostream &os, Expr a, int depth) {
  if (a->isZero()) {
    os << "0";
    return;
  }
  if (depth >= kMostDepth && a->getTerms().size() > 1) {
    os << "...";
    return;
  }
  for (auto [i, term] : llvm::enumerate(a->getTerms())) {
    if (i == kMostTerms) {
      os << " + " << a->getTerms().size() - i << " more terms";
      return;
    }
    if (i > 0)
      os << " + ";
    bool first = true;
    if (!(term.coefficient == Rational{1, 1}) || term.monomial.empty()) {
      os << term.coefficient.numerator;
      if (term.coefficient.denominator != 1)
        os << "/" << term.coefficient.denominator;
      first = false;
    }
    for (auto [base, exponent] : term.monomial) {
      os << (first ? "" : " * ");
      printBase(os, *base, depth);
      if (exponent != 1)
        os << "^" << exponent;
      first = false;
    }
  }
}

void prove::print(llvm::raw_ostream &os, Expr a) { ::print(os, a, 0); }

std::string prove::toString(Expr a) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os, a);
  return text;
}

std::string prove::toString(BaseRef base) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printBase(os, *base, 0);
  return text;
}
