//===- AlgebraPrint.cpp - Polynomials in a reader's words -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Algebra.h"

#include "dialect/zero/StorageTypes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace zero;
using namespace zero::prove;

namespace {
/// Prints polynomials. Longer sums are cut, since a norm has one term per
/// parameter. Deeply nested sums are cut, too: they are the same in most
/// numbers of a step.
class Printer {
public:
  /// Without |other|, a number is cut wherever it is long.
  Printer(std::string &text, Expr other) : os(text), text(text) {
    if (other)
      add(other);
  }
  /// Does not cut what the other number has, either.
  void setWhole() {
    numbers.clear();
    terms.clear();
  }

  /// Prints factors that the other number has before those that it has not, so
  /// that both texts differ where the numbers do.
  void align() { isAligned = true; }

  void print(Expr a, int depth = 0);
  void print(const Base &base, int depth);

private:
  void add(Expr other);
  void print(const Term &term, int depth);
  bool isKnown(const Term &term) const {
    return !isCompared || terms.contains(getKey(term));
  }
  static size_t getKey(const Term &term) {
    llvm::hash_code key = llvm::hash_combine(term.coefficient.numerator,
                                             term.coefficient.denominator);
    for (auto [base, exponent] : term.monomial)
      key = llvm::hash_combine(key, base->index, exponent);
    return key;
  }

  static constexpr size_t kMostTerms = 4;
  static constexpr int kMostDepth = 3;
  static constexpr size_t kMostOtherTerms = 8;
  static constexpr size_t kMostText = 4000;

  llvm::raw_string_ostream os;
  std::string &text;
  bool isCompared = false;
  bool isAligned = false;
  /// All numbers in the other one, their terms, and what these multiply.
  llvm::DenseSet<Expr> numbers;
  llvm::DenseSet<size_t> terms;
  llvm::DenseSet<BaseRef> bases;
};
} // namespace

void Printer::add(Expr other) {
  isCompared = true;
  llvm::SmallVector<Expr> stack{other};
  while (!stack.empty()) {
    Expr top = stack.pop_back_val();
    if (!numbers.insert(top).second)
      continue;
    for (const Term &term : top->getTerms()) {
      terms.insert(getKey(term));
      for (auto [base, exponent] : term.monomial) {
        bases.insert(base);
        llvm::append_range(stack, base->operands);
      }
    }
  }
}

void Printer::print(const Base &base, int depth) {
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
  case BaseKind::delivered:
    os << "backward passes with a gradient of '" << base.name << "'";
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
    os << (base.name == "sum" ? "" : base.name) << "(";
    break;
  }
  llvm::interleaveComma(base.operands, os,
                        [&](Expr operand) { print(operand, depth + 1); });
  os << ")";
  if (base.bits)
    os << " taken in " << getStorageTypeName(base.bits);
}

void Printer::print(const Term &term, int depth) {
  bool first = true;
  if (!(term.coefficient == Rational{1, 1}) || term.monomial.empty()) {
    os << term.coefficient.numerator;
    if (term.coefficient.denominator != 1)
      os << "/" << term.coefficient.denominator;
    first = false;
  }
  Monomial factors;
  for (bool isShared : {true, false})
    for (auto factor : term.monomial)
      if ((!isAligned || bases.contains(factor.first)) == isShared)
        factors.push_back(factor);
  for (auto [base, exponent] : factors) {
    os << (first ? "" : " * ");
    print(*base, depth);
    if (exponent != 1)
      os << "^" << exponent;
    first = false;
  }
}

void Printer::print(Expr a, int depth) {
  if (a->isZero()) {
    os << "0";
    return;
  }
  bool isKnown = !isCompared || numbers.contains(a) || text.size() > kMostText;
  if (depth >= kMostDepth && a->getTerms().size() > 1 && isKnown) {
    os << "...";
    return;
  }
  // Terms that the other number does not have come before those that it has.
  llvm::SmallVector<const Term *> order;
  bool isSorted = isCompared && a->getTerms().size() > kMostTerms;
  for (bool known : {false, true})
    for (const Term &term : a->getTerms())
      if ((isSorted && this->isKnown(term)) == known)
        order.push_back(&term);
  for (auto [i, term] : llvm::enumerate(order)) {
    if (i >= kMostOtherTerms || (i >= kMostTerms && this->isKnown(*term))) {
      os << " + " << order.size() - i << " more terms";
      return;
    }
    if (i > 0)
      os << " + ";
    print(*term, depth);
  }
}

static std::string print(Expr a, Expr other, bool isWhole = false,
                         bool isAligned = false) {
  std::string text;
  Printer printer(text, other);
  if (isAligned)
    printer.align();
  if (isWhole)
    printer.setWhole();
  printer.print(a);
  return text;
}

/// The begin of the word at |position|, unless the word is long.
static size_t findWord(llvm::StringRef text, size_t position) {
  constexpr size_t kLongest = 50;
  size_t space = text.rfind(' ', position);
  bool isNear = space != llvm::StringRef::npos && position - space < kLongest;
  return isNear ? space + 1 : position;
}

static constexpr size_t kMostShown = 600;

/// As much of |text| as a reader takes in: its begin, and where it begins to
/// differ from |other|.
static std::string cut(llvm::StringRef text, llvm::StringRef other) {
  constexpr size_t kMost = kMostShown, kBegin = 200, kBefore = 100;
  if (text.size() <= kMost)
    return text.str();
  size_t same = 0;
  while (same < text.size() && same < other.size() && text[same] == other[same])
    ++same;
  std::string shown;
  if (same > kMost / 2) {
    shown = text.take_front(findWord(text, kBegin)).str() + "... ";
    text = text.drop_front(findWord(text, same - kBefore));
  }
  size_t rest = kMost - shown.size();
  if (text.size() <= rest)
    return shown + text.str();
  return shown + text.take_front(findWord(text, rest)).str() + "...";
}

std::string prove::toString(Expr a) { return cut(print(a, nullptr), ""); }

std::string prove::toString(Expr a, Expr other) {
  std::string text = print(a, other), otherText = print(other, a);
  // Both have the same parts, in other places.
  bool isWhole = a != other && text == otherText;
  if (isWhole) {
    text = print(a, other, isWhole);
    otherText = print(other, a, isWhole);
  }
  if (text.size() <= kMostShown)
    return text;
  return cut(print(a, other, isWhole, /*isAligned=*/true),
             print(other, a, isWhole, /*isAligned=*/true));
}

std::string prove::toString(BaseRef base) {
  std::string text;
  Printer(text, nullptr).print(*base, 0);
  return cut(text, "");
}
