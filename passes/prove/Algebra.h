//===- Algebra.h - Numbers of a step as polynomials -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The proof computes over the reals. A number is a polynomial with rational
// coefficients. Its variables are bases: an arriving gradient, a value from the
// step before, the number of backward passes, a square root, and so on. Equal
// polynomials are one object, so a comparison of numbers compares pointers.
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

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zero::prove {

class Polynomial;
class RoundingTable;
/// A polynomial. The algebra that made it owns it.
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

/// Results are in lowest terms; nothing if a result does not fit.
std::optional<Rational> normalize(int64_t numerator, int64_t denominator);
std::optional<Rational> add(Rational a, Rational b);
std::optional<Rational> multiply(Rational a, Rational b);

/// A set of axes of a mesh, with a bit for each axis of more than one rank.
using AxisSet = uint32_t;

/// The backward passes of a gradient.
enum class Epoch {
  current, ///< the open one
  earlier, ///< the sum over all closed ones
  former,  ///< the sum over all closed ones but the last
  last,    ///< the one closed last, if others were closed before
  all,     ///< the sum over all backward passes of the step
};

enum class BaseKind {
  symbol,    ///< a step symbol: accumulation, tokens, a loss scale
  input,     ///< a scalar that the caller passes to apply
  tokens,    ///< an input that counts tokens: may be 0 or nan. In an applied
             ///< step it is a symbol
  old,       ///< a scalar from the step before
  constant,  ///< a number that is not a small fraction
  missing,   ///< the number of missing gradients on this rank
  delivered, ///< the number of backward passes of this rank in which a gradient
             ///< of a parameter arrived
  gradient,  ///< this element's arriving gradient
  state,     ///< this element's value from the step before
  undefined, ///< a value that was never written
  sumOver,   ///< the sum of operand 0 over the elements of a parameter
  rankSum,   ///< the sum of operand 0 over ranks, except axes in `over`
  once,      ///< 1 on the first rank over the axes, 0 on the others
  operation, ///< a result that is not a polynomial of the operands
};

/// A variable of polynomials.
struct Base {
  BaseKind kind;
  std::string name;         // symbol, role, parameter or operation
  Epoch epoch = Epoch::all; // of a gradient
  /// Axes over which each rank has an addend of its own. The base stands for
  /// the sum over them.
  AxisSet over = 0;
  /// Of a constant. Of a sumOver: 1 if the addends are taken in the type of
  /// |bits|, 0 if only gradients are rounded to it. Of an input: 1 if it is
  /// positive.
  double value = 0;
  std::vector<Expr> operands = {};
  unsigned bits = 0; // sumOver: the type of the addends; 0: f64
  // Derived from the operands.
  bool isElement = false; // differs per element
  bool isUndefined = false;
  AxisSet own = 0;       // axes over which ranks have different numbers
  bool mayBeNan = false; // or infinite: see Polynomial::mayBeNan
  bool hasGradient = false;
  bool hasOwnCount = false;                   // see Polynomial::hasOwnCount
  bool hasCounter = false, hasOthers = false; // see Polynomial::isOfCounters
  double exponent = 0;                        // see Polynomial::getExponent
  unsigned depth = 0;                         // of operations in operations
  unsigned index = 0;

  /// Whether it is an input that is positive and finite. A step with another
  /// number is refused.
  bool isPositiveInput() const { return kind == BaseKind::input && value == 1; }
};
using BaseRef = const Base *;

/// A product of powers of bases, by index.
using Monomial = llvm::SmallVector<std::pair<BaseRef, int64_t>, 2>;

struct Term {
  Rational coefficient;
  Monomial monomial;

  /// Whether the term is always 0. A product of 0 and a number that may be nan
  /// is kept, since it may be nan.
  bool vanishes() const;
};

class Polynomial {
public:
  /// Sorted by monomial; none vanishes.
  llvm::ArrayRef<Term> getTerms() const { return terms; }
  bool isZero() const { return terms.empty(); }
  bool isElement() const { return element; }
  /// Whether it depends on a value that was never written.
  bool isUndefined() const { return undefined; }
  /// Whether it is a value that was never written. A selection of such a value
  /// and another number is not: a decision may choose the other one.
  bool isNothing() const {
    BaseRef base = asBase();
    return base && base->kind == BaseKind::undefined;
  }
  /// Whether it depends on a number that may be nan or infinite: a gradient, a
  /// value that was never written, a quotient, a root, or such a constant.
  /// State is finite, as long as no applied step makes it nan.
  bool mayBeNan() const { return nan; }
  /// Whether it depends on an arriving gradient, directly or through a norm.
  bool hasGradient() const { return gradient; }
  /// The axes over which ranks have different numbers, even if they made the
  /// same number of backward passes. An element of a sharded buffer is one
  /// number for all ranks: that of its owner.
  AxisSet getOwn() const { return own; }
  /// Whether it depends on this rank's number of backward passes. A sum of such
  /// numbers over ranks is the same on all ranks.
  bool hasOwnCount() const { return ownCount; }
  /// Whether it depends on counters, and on nothing else but constants.
  bool isOfCounters() const { return counter && !others; }
  /// Whether it is a sum of bases times fractions, and no base is an operation.
  bool isSumOfBases() const { return sumOfBases; }
  /// The power of 2 by which it is larger than its variables: that of its
  /// largest term, with constants and operations as their operands have it.
  double getExponent() const { return exponent; }
  /// The depth of nested operations, which is the depth of walks.
  unsigned getDepth() const { return depth; }
  /// The number, if it is a constant fraction.
  std::optional<Rational> asRational() const;
  /// The base, if the polynomial is one base.
  BaseRef asBase() const;
  /// The number of this polynomial in order of creation. Orders by this number
  /// do not depend on addresses.
  unsigned getIndex() const { return index; }

private:
  friend class Algebra;
  std::vector<Term> terms;
  bool element = false;
  bool undefined = false;
  bool nan = false;
  bool gradient = false;
  bool ownCount = false;
  bool counter = false, others = false;
  bool sumOfBases = true;
  AxisSet own = 0;
  double exponent = 0;
  unsigned depth = 0;
  unsigned index = 0;
};

/// Makes polynomials and owns them.
class Algebra {
public:
  Algebra();
  ~Algebra();

  /// The names of axes in messages, in the order of their bits. A single axis
  /// needs no name.
  void setAxisNames(std::vector<std::string> names) {
    axisNames = std::move(names);
  }

  /// The precisions of the sources of numbers.
  RoundingTable &getRoundings();
  /// What findLostBits has found, by its two addends and their sum.
  std::map<std::array<Expr, 3>, double> &getKnownLostBits();

  Expr rational(Rational value);
  Expr integer(int64_t value) { return rational({value, 1}); }
  /// A fraction if |value| is a small fraction, else a base.
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
  /// |what| describes the place of the value in messages.
  Expr undefined(llvm::StringRef what) {
    return base({BaseKind::undefined, what.str()});
  }
  Expr operation(llvm::StringRef name, llvm::ArrayRef<Expr> operands) {
    return base(
        {BaseKind::operation, name.str(), Epoch::all, 0, 0, operands.vec()});
  }
  /// A commutative operation. The smaller or larger of two constants is one of
  /// them.
  Expr symmetric(llvm::StringRef name, Expr a, Expr b);

  Expr add(Expr a, Expr b);
  /// The sum of many addends. One by one would take quadratic time.
  Expr sum(llvm::ArrayRef<Expr> addends);
  Expr subtract(Expr a, Expr b) { return add(a, negate(b)); }
  Expr negate(Expr a);
  Expr multiply(Expr a, Expr b);
  Expr divide(Expr a, Expr b);
  /// Halves exponents if they are even.
  Expr squareRoot(Expr a);
  Expr power(Expr a, int64_t exponent);
  /// The magnitude of |a|, factor by factor. Its square is that of |a|.
  Expr magnitude(Expr a);
  /// |a| divided by |a|: 1, times an operation divf(x, x) for each x of it that
  /// may be 0, for which it is nan.
  Expr overItself(Expr a);
  /// |a| minus |a|: 0, or an operation subf(a, a) that is nan where |a| is
  /// infinite.
  Expr minusItself(Expr a);

  /// The sum of |function|(term) over all terms; null if one of them is null.
  Expr mapTerms(Expr a, llvm::function_ref<Expr(const Term &)> function);
  Expr product(Rational coefficient, const Monomial &monomial);
  /// Null where an exponent is too large.
  std::optional<Monomial> multiply(const Monomial &a, const Monomial &b);

  /// Replaces bases in |a|, also in operands. A base for which |function| gives
  /// null stays.
  Expr substitute(Expr a, llvm::function_ref<Expr(BaseRef)> function);

  /// The value of |a| if bases have the values of |function|. Operations are
  /// evaluated in f64.
  double evaluate(Expr a,
                  llvm::function_ref<std::optional<double>(BaseRef)> function);

private:
  Expr intern(std::vector<Term> terms);
  Expr asFactor(Expr a);
  Expr multiplyFactor(Expr a, Expr b);
  Expr joinSums(Expr a);
  /// Adds what is nan where one of |lost|, of which a part was taken away, is
  /// infinite.
  Expr addNan(Expr a, llvm::ArrayRef<Monomial> lost);
  /// Adds |terms|, which may be in any order; null if a coefficient does not
  /// fit.
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
  unsigned multiplyDepth = 0; // calls of multiply in calls of multiply
  size_t numProducts = 0;     // of terms, in the outermost one
};

/// Algebra::substitute for many numbers with common parts. Each part is visited
/// once. Bases in the results of |function| are replaced, too. If |function|
/// gives the base itself, its operands stay, too. |finish|, which
/// may be null, gives for each number that results an equal one.
class Substitution {
public:
  Substitution(Algebra &algebra, std::function<Expr(BaseRef)> function,
               std::function<Expr(Expr)> finish = {})
      : algebra(algebra), function(std::move(function)),
        finish(std::move(finish)) {}

  Expr apply(Expr a);

private:
  Expr replace(BaseRef base);

  Algebra &algebra;
  std::function<Expr(BaseRef)> function;
  std::function<Expr(Expr)> finish;
  llvm::DenseMap<Expr, Expr> known;
  llvm::DenseMap<BaseRef, Expr> replacements; // null: stays
};

/// Whether |a| is made of constants alone. It is not deep: walks are recursive.
bool isConstant(Expr a);

/// The value of |a|, which is constant.
double evaluateConstant(Algebra &algebra, Expr a);

/// Whether |base| is finite and not 0 in an applied step, so that it is 1 over
/// itself: a constant; what gradients are divided by, which are counts of
/// all ranks and the loss scale; the number of backward passes. A share of a
/// sum may be 0 on all ranks but one.
bool isNeverZero(BaseRef base);

/// Whether |monomial| divides by a number that may be 0.
bool dividesByZero(const Monomial &monomial);

/// Whether |base| is a sum that is divided by a number that may be 0, as one
/// factor.
bool isDividedSum(BaseRef base);

/// Whether operands may change places: then they are in one order, see
/// Algebra::symmetric.
bool isSymmetric(llvm::StringRef name);

/// Visits every base of |a| once, also in operands. If |enter|(base) is false,
/// the operands of the base are left out.
void visitBases(
    Expr a, llvm::function_ref<void(BaseRef)> visit,
    llvm::function_ref<bool(BaseRef)> enter = [](BaseRef) { return true; });

/// Prints |a| for a training engineer: "1/2 * (gradient of ...)".
std::string toString(Expr a);
std::string toString(BaseRef base);
/// As toString(Expr), but no part of |a| is cut that |other| does not have.
std::string toString(Expr a, Expr other);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_ALGEBRA_H
