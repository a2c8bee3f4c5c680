//===- Algebra.h - Numbers of a step as polynomials -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The proof computes with a step's numbers over the reals: each is a polynomial
// with rational coefficients over bases (an arriving gradient, a value from the
// step before, the number of backward passes, a square root of something ...).
// Equal polynomials are one object, so two numbers are the same if their
// pointers are.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_ALGEBRA_H
#define ZERO_PASSES_PROVE_ALGEBRA_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zero::prove {

class Polynomial;
/// Owned by the algebra that made it.
using Expr = const Polynomial *;

/// An exact fraction of small integers.
struct Rational {
  int64_t numerator = 0;
  int64_t denominator = 1; // positive, coprime to the numerator

  bool operator==(const Rational &other) const {
    return numerator == other.numerator && denominator == other.denominator;
  }
  double asDouble() const { return double(numerator) / double(denominator); }
};

/// In lowest terms; nothing where a result does not fit.
std::optional<Rational> normalize(int64_t numerator, int64_t denominator);
std::optional<Rational> add(Rational a, Rational b);
std::optional<Rational> multiply(Rational a, Rational b);

/// A set of axes of a mesh, a bit for each that has more than one rank: over
/// the others there is nothing to tell apart.
using AxisSet = uint32_t;

/// Which backward passes of the step a gradient is of.
enum class Epoch {
  current, ///< the open one
  earlier, ///< the sum over all that are closed
  former,  ///< of those closed not all: the last is not among them
  last,    ///< the one closed last, where others were closed before
  all,     ///< the sum over all backward passes of the step
};

enum class BaseKind {
  symbol,    ///< a step symbol: accumulation, tokens, a loss scale
  input,     ///< a scalar that the caller passes to apply
  tokens,    ///< the same that counts tokens: maybe 0, or no number. Where a
             ///< step is applied it is a symbol
  old,       ///< a scalar from the step before
  constant,  ///< a number that is no small fraction
  missing,   ///< how many gradients did not arrive on this rank
  gradient,  ///< this element's arriving gradient
  state,     ///< this element's value from the step before
  undefined, ///< what nobody has written
  sumOver,   ///< the sum of operand 0 over the elements of a parameter
  rankSum,   ///< the sum of operand 0 over ranks: those not left in `over`
  once,      ///< 1 on the first rank over the axes, 0 on the others
  operation, ///< anything that is no polynomial of its operands
};

/// What a polynomial is over.
struct Base {
  BaseKind kind;
  std::string name;         // symbol, role, parameter or operation
  Epoch epoch = Epoch::all; // of a gradient
  /// Axes over which each rank has a part of its own, and the sum over them is
  /// what is meant.
  AxisSet over = 0;
  double value = 0; // of a constant
  std::vector<Expr> operands = {};
  unsigned bits = 0; // sumOver: in which addends were computed; 0: as in f64
  // What follows from the operands.
  bool isElement = false; // differs per element
  bool isUndefined = false;
  AxisSet own = 0;       // axes over which ranks have different numbers
  bool mayBeNan = false; // or infinite: see Polynomial::mayBeNan
  bool hasGradient = false;
  bool hasOwnCount = false; // see Polynomial::hasOwnCount
  unsigned depth = 0;       // of operations in operations
  unsigned index = 0;
};
using BaseRef = const Base *;

/// A product of powers of bases, by index.
using Monomial = llvm::SmallVector<std::pair<BaseRef, int64_t>, 2>;

struct Term {
  Rational coefficient;
  Monomial monomial;

  /// Whether it is 0 whatever happens. 0 times what may be nan stays a term: it
  /// may be nan.
  bool vanishes() const;
};

class Polynomial {
public:
  /// Sorted by monomial; none vanishes.
  llvm::ArrayRef<Term> getTerms() const { return terms; }
  bool isZero() const { return terms.empty(); }
  bool isElement() const { return element; }
  /// Whether it depends on what nobody wrote.
  bool isUndefined() const { return undefined; }
  /// Whether it depends on what may be nan or infinite: gradients, what nobody
  /// wrote, quotients, roots and constants that are. What lasts across steps is
  /// finite, as long as no step is applied that makes it nan.
  bool mayBeNan() const { return nan; }
  /// Whether it depends on an arriving gradient, also by a norm.
  bool hasGradient() const { return gradient; }
  /// The axes over which ranks have different numbers for it, the number of
  /// their backward passes apart. What an element of a sharded buffer holds is
  /// the same for all ranks: its owner's.
  AxisSet getOwn() const { return own; }
  /// Whether it is another number where this rank made another number of
  /// backward passes. A sum of these numbers over ranks is the same on all.
  bool hasOwnCount() const { return ownCount; }
  /// Of operations in operations: walks go as deep.
  unsigned getDepth() const { return depth; }
  /// The number, if it is a constant fraction.
  std::optional<Rational> asRational() const;
  /// The base, if it is that alone.
  BaseRef asBase() const;
  /// Counts polynomials as they were made, so that an order does not depend on
  /// addresses.
  unsigned getIndex() const { return index; }

private:
  friend class Algebra;
  std::vector<Term> terms;
  bool element = false;
  bool undefined = false;
  bool nan = false;
  bool gradient = false;
  bool ownCount = false;
  AxisSet own = 0;
  unsigned depth = 0;
  size_t hash = 0;
  unsigned index = 0;
};

/// Makes polynomials and owns them.
class Algebra {
public:
  Algebra();
  ~Algebra();

  /// What axes are called in messages, in the order of their bits. Where there
  /// is one axis only it needs no name.
  void setAxisNames(std::vector<std::string> names) {
    axisNames = std::move(names);
  }

  Expr rational(Rational value);
  Expr integer(int64_t value) { return rational({value, 1}); }
  /// A fraction if |value| is a small one, a base otherwise.
  Expr constant(double value);
  Expr base(Base base);
  Expr symbol(llvm::StringRef name) {
    return base({BaseKind::symbol, name.str()});
  }
  /// Each rank has its own share over the axes |over|.
  Expr gradient(Epoch epoch, AxisSet over) {
    return base({BaseKind::gradient, "", epoch, over});
  }
  Expr state(llvm::StringRef role) {
    return base({BaseKind::state, role.str()});
  }
  /// |what| says where the value would be.
  Expr undefined(llvm::StringRef what) {
    return base({BaseKind::undefined, what.str()});
  }
  Expr operation(llvm::StringRef name, llvm::ArrayRef<Expr> operands) {
    return base(
        {BaseKind::operation, name.str(), Epoch::all, 0, 0, operands.vec()});
  }
  /// Of an operation whose operands may change places.
  Expr symmetric(llvm::StringRef name, Expr a, Expr b) {
    return a->getIndex() < b->getIndex() ? operation(name, {a, b})
                                         : operation(name, {b, a});
  }

  Expr add(Expr a, Expr b);
  /// Of many at once: one by one takes time with the square of their number.
  Expr sum(llvm::ArrayRef<Expr> addends);
  Expr subtract(Expr a, Expr b) { return add(a, negate(b)); }
  Expr negate(Expr a);
  Expr multiply(Expr a, Expr b);
  Expr divide(Expr a, Expr b);
  /// Half the exponents where they are even.
  Expr squareRoot(Expr a);
  Expr power(Expr a, int64_t exponent);

  /// The sum of what |function| makes of each term; null if it made none.
  Expr mapTerms(Expr a, llvm::function_ref<Expr(const Term &)> function);
  Expr product(Rational coefficient, const Monomial &monomial);

  /// |a| with other bases; operands are visited, too. |function| gives null
  /// where a base stays.
  Expr substitute(Expr a, llvm::function_ref<Expr(BaseRef)> function);

  /// The number that |a| is where bases have the values that |function| gives;
  /// operations are evaluated in f64.
  double evaluate(Expr a,
                  llvm::function_ref<std::optional<double>(BaseRef)> function);

private:
  Expr intern(std::vector<Term> terms);
  /// Takes them in any order; null where a coefficient does not fit.
  Expr merge(std::vector<Term> terms);
  double evaluate(Expr a,
                  llvm::function_ref<std::optional<double>(BaseRef)> function,
                  llvm::DenseMap<const void *, double> &known);
  double
  evaluateBase(BaseRef base,
               llvm::function_ref<std::optional<double>(BaseRef)> function,
               llvm::DenseMap<const void *, double> &known);
  struct Tables;
  std::unique_ptr<Tables> tables;
  std::vector<std::string> axisNames;
};

/// Algebra::substitute for many numbers that have parts in common: each part is
/// looked at once. What |function| gives may have bases that are replaced, too.
class Substitution {
public:
  Substitution(Algebra &algebra, std::function<Expr(BaseRef)> function)
      : algebra(algebra), function(std::move(function)) {}

  Expr apply(Expr a);

private:
  Expr replace(BaseRef base);

  Algebra &algebra;
  std::function<Expr(BaseRef)> function;
  llvm::DenseMap<Expr, Expr> known;
  llvm::DenseMap<BaseRef, Expr> replacements; // null: stays
};

/// Visits every base of |a|, those of operands included, each once; of bases
/// for which |enter| is false not the operands.
void visitBases(
    Expr a, llvm::function_ref<void(BaseRef)> visit,
    llvm::function_ref<bool(BaseRef)> enter = [](BaseRef) { return true; });

/// In words of a training engineer: "1/2 x the sum over ranks of ...".
void print(llvm::raw_ostream &os, Expr a);
std::string toString(Expr a);
std::string toString(BaseRef base);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_ALGEBRA_H
