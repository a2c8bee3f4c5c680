//===- RealNumbers.h - Are numbers equal, given facts? ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Polynomials that are two objects may be equal nevertheless if more is known
// of their bases. A quotient may be multiplied by a number that is not 0, the
// root of a product is that of its factors if one is positive, and a selection
// may be a minimum. A number that may be nan or infinite is a variable of its
// own, so none of this is used for it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_REALNUMBERS_H
#define ZERO_PASSES_PROVE_REALNUMBERS_H

#include "passes/prove/Facts.h"

#include <map>
#include <unordered_map>

namespace zero::prove {

class RealNumbers {
public:
  RealNumbers(Algebra &algebra, Facts facts)
      : algebra(algebra), facts(std::move(facts)) {}

  /// Whether |a| and |b| are equal in every applied step.
  bool areEqual(Expr a, Expr b);
  /// The bounds of |a| wherever it is a number.
  Bounds getBounds(Expr a) { return get(a).bounds; }
  /// The binary digits that |a| loses since terms cancel that only facts show
  /// to be multiples of each other, as in 1 / (1 / (x + 2^22)) - 2^22.
  double getLostBits(Expr a) { return get(a).lostBits; }
  const Facts &getFacts() const { return facts; }

private:
  /// The factors of a denominator and their powers, by index. Each factor is
  /// positive.
  using Factors = std::map<unsigned, std::pair<Expr, int64_t>>;
  /// A quotient of polynomials in |atoms|.
  struct Real {
    Expr over = nullptr;
    Factors under = {};
    Bounds bounds = Bounds::ofAll();
    bool isFinite = false;
    double lostBits = 0; // in it, and in numbers that it is computed of
  };
  /// An operation on numbers that stays one.
  struct Operation {
    std::string name;
    llvm::SmallVector<Real, 3> operands;
    Real result;
  };
  /// One of two numbers, selected by the sign of a third one.
  struct Choice {
    enum IfZero { either, more, less };
    Expr sign;     // a polynomial in |atoms| that has the sign
    Bounds bounds; // of the third number, times a positive one
    Expr ifMore;   // than 0
    Expr ifLess;
    IfZero ifZero; // |either| if both numbers are equal then
  };

  const Real &get(Expr a);
  const Real &get(BaseRef base);
  Real compute(Expr a);
  Real compute(const Term &term);
  Bounds findBounds(Expr a);
  Real compute(BaseRef base);
  Real makeAtom(std::optional<Bounds> bounds);
  Real keep(llvm::StringRef name, llvm::ArrayRef<Real> operands,
            std::optional<Bounds> bounds);
  Real getNumber(Rational value);
  Real multiply(const Real &a, const Real &b);
  Real add(llvm::ArrayRef<Real> addends);
  Real raise(const Real &a, int64_t exponent);
  Real invert(const Real &a);
  Real squareRoot(Expr a);
  Real rootOf(const Real &a);
  Real magnitude(const Real &a);
  Real makeRoot(Expr square, Bounds bounds);
  Real select(BaseRef base);
  bool areEqual(const Real &a, const Real &b);
  Expr multiplyBy(Expr a, const Factors &part, const Factors &whole);
  Expr reduce(Expr a);

  std::optional<Real> getDifference(Expr a, Expr b);
  Expr getSign(const Real &a);
  bool isMultiple(Expr a, Expr b);
  std::optional<Choice> getChoice(BaseRef base);
  Expr decide(Expr a);
  bool areEqual(const Choice &a, const Choice &b);
  Expr useChoicesOf(Expr a, Expr b);

  Algebra &algebra;
  Facts facts;
  /// What is not a polynomial of other numbers is a variable here.
  Algebra atoms;
  unsigned numAtoms = 0;
  llvm::DenseMap<BaseRef, Bounds> boundsOfAtoms;
  /// get() refers to numbers in these maps, which keep their places.
  std::unordered_map<Expr, Real> known;
  std::unordered_map<BaseRef, Real> knownBases;
  llvm::DenseMap<std::pair<Expr, Expr>, bool> compared;
  std::vector<Operation> operations;
  /// Atoms that are not negative, by their square, and the squares of atoms.
  llvm::DenseMap<Expr, Real> roots;
  llvm::DenseMap<BaseRef, Expr> squares;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_REALNUMBERS_H
