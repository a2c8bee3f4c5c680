//===- RealNumbers.cpp - Are numbers equal, given facts? ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A number is a quotient of polynomials with a positive denominator, so two of
// them are compared by multiplying.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/RealNumbers.h"
#include "passes/prove/Magnitudes.h"

using namespace zero;
using namespace zero::prove;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

RealNumbers::Real RealNumbers::makeAtom(std::optional<Bounds> bounds) {
  std::string name = std::to_string(numAtoms++);
  Real atom;
  atom.isFinite = bounds.has_value();
  // 0 times a number that may be nan is kept.
  atom.over = bounds ? atoms.state(name) : atoms.undefined(name);
  atom.bounds = bounds.value_or(Bounds::ofAll());
  boundsOfAtoms[atom.over->asBase()] = atom.bounds;
  return atom;
}

RealNumbers::Real RealNumbers::getNumber(Rational value) {
  Real number{atoms.rational(value)};
  number.bounds = prove::multiply(
      Bounds::ofNumber(double(value.numerator)),
      prove::invert(Bounds::ofNumber(double(value.denominator))));
  number.isFinite = true;
  return number;
}

/// Replaces squares of roots by what is under them.
Expr RealNumbers::reduce(Expr a) {
  for (bool isReduced = false; !isReduced;) {
    isReduced = true;
    a = atoms.mapTerms(a, [&](const Term &term) {
      Expr product = atoms.integer(1);
      Monomial rest;
      for (auto [base, exponent] : term.monomial) {
        auto it = exponent >= 2 ? squares.find(base) : squares.end();
        if (it == squares.end()) {
          rest.push_back({base, exponent});
          continue;
        }
        isReduced = false;
        product =
            atoms.multiply(product, atoms.power(it->second, exponent / 2));
        if (exponent % 2)
          rest.push_back({base, 1});
      }
      return atoms.multiply(atoms.product(term.coefficient, rest), product);
    });
  }
  return a;
}

RealNumbers::Real RealNumbers::multiply(const Real &a, const Real &b) {
  Real product{reduce(atoms.multiply(a.over, b.over)), a.under,
               prove::multiply(a.bounds, b.bounds), a.isFinite && b.isFinite,
               std::max(a.lostBits, b.lostBits)};
  for (auto &[index, factor] : b.under)
    product.under.try_emplace(index, factor.first, 0).first->second.second +=
        factor.second;
  return product;
}

/// |a|, which is a number over |part|, as one over |whole|.
Expr RealNumbers::multiplyBy(Expr a, const Factors &part,
                             const Factors &whole) {
  for (auto &[index, factor] : whole) {
    auto it = part.find(index);
    int64_t missing =
        factor.second - (it == part.end() ? 0 : it->second.second);
    a = atoms.multiply(a, atoms.power(factor.first, missing));
  }
  return reduce(a);
}

RealNumbers::Real RealNumbers::add(llvm::ArrayRef<Real> addends) {
  Real sum{nullptr, {}, Bounds::ofNumber(0), true};
  for (const Real &addend : addends) {
    sum.bounds = prove::add(sum.bounds, addend.bounds);
    sum.isFinite &= addend.isFinite;
    sum.lostBits = std::max(sum.lostBits, addend.lostBits);
    for (auto &[index, factor] : addend.under) {
      int64_t &power =
          sum.under.try_emplace(index, factor.first, 0).first->second.second;
      power = std::max(power, factor.second);
    }
  }
  llvm::SmallVector<Expr> terms;
  for (const Real &addend : addends)
    terms.push_back(multiplyBy(addend.over, addend.under, sum.under));
  sum.over = atoms.sum(terms);
  sum.lostBits =
      std::max(sum.lostBits, prove::getLostBits(atoms, terms, sum.over));
  return sum;
}

bool RealNumbers::areEqual(const Real &a, const Real &b) {
  Factors both = a.under;
  for (auto &[index, factor] : b.under) {
    int64_t &power =
        both.try_emplace(index, factor.first, 0).first->second.second;
    power = std::max(power, factor.second);
  }
  return multiplyBy(a.over, a.under, both) == multiplyBy(b.over, b.under, both);
}

/// |a| is finite and has a sign.
RealNumbers::Real RealNumbers::invert(const Real &a) {
  Real inverse{atoms.integer(1), {}, prove::invert(a.bounds), true, a.lostBits};
  bool isPositive = a.bounds.isNotNegative();
  Expr size = isPositive ? a.over : atoms.negate(a.over);
  inverse.over = atoms.integer(isPositive ? 1 : -1);
  for (auto &[index, factor] : a.under)
    inverse.over =
        atoms.multiply(inverse.over, atoms.power(factor.first, factor.second));
  inverse.over = reduce(inverse.over);
  // Products are factor by factor, so that one that two denominators have is
  // found, unless a factor may be negative.
  auto addFactor = [&](Expr factor, int64_t power) {
    inverse.under[factor->getIndex()] = {factor, power};
  };
  auto terms = size->getTerms();
  if (terms.size() != 1 || llvm::any_of(terms[0].monomial, [&](auto factor) {
        return !boundsOfAtoms.lookup(factor.first).isPositive();
      })) {
    addFactor(size, 1);
    return inverse;
  }
  for (auto [base, exponent] : terms[0].monomial)
    addFactor(atoms.product({1, 1}, {{base, 1}}), exponent);
  Rational factor = terms[0].coefficient;
  inverse.over = atoms.multiply(
      inverse.over, atoms.rational({factor.denominator, factor.numerator}));
  return inverse;
}

RealNumbers::Real RealNumbers::raise(const Real &a, int64_t exponent) {
  Real power = getNumber({1, 1});
  constexpr int64_t kLargest = 64;
  if (std::abs(exponent) > kLargest)
    return keep("power " + std::to_string(exponent), a, std::nullopt);
  if (exponent >= 0) {
    for (int64_t i = 0; i < exponent; ++i)
      power = multiply(power, a);
    power.bounds = prove::raise(a.bounds, exponent);
    return power;
  }
  if (a.isFinite && a.bounds.hasSign())
    return raise(invert(a), -exponent);
  return raise(keep("inverse", a, std::nullopt), -exponent);
}

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

/// The atom that is not negative and has the |square|.
RealNumbers::Real RealNumbers::makeRoot(Expr square, Bounds bounds) {
  auto [it, isNew] = roots.try_emplace(square);
  if (isNew) {
    it->second = makeAtom(bounds);
    squares[it->second.over->asBase()] = square;
  }
  return it->second;
}

/// Of |a|, which is finite and not negative.
RealNumbers::Real RealNumbers::rootOf(const Real &a) {
  // The root of n / (x^2 y) is that of n y, over x y.
  Real root{a.over, {}, prove::squareRoot(a.bounds), true, a.lostBits};
  for (auto &[index, factor] : a.under) {
    auto [base, power] = factor;
    root.under[index] = {base, (power + 1) / 2};
    if (power % 2)
      root.over = reduce(atoms.multiply(root.over, base));
  }
  if (auto number = root.over->asRational();
      number && *number == Rational{1, 1})
    return root;
  Bounds bounds = Bounds::ofAllFrom0();
  bounds.notZero = a.bounds.isNotZero();
  root.over = makeRoot(root.over, bounds).over;
  return root;
}

RealNumbers::Real RealNumbers::squareRoot(Expr a) {
  // A sum over no elements is 0, whatever it is multiplied by.
  Expr added = algebra.mapTerms(a, [&](const Term &term) {
    bool isZero = term.coefficient.numerator == 0 &&
                  llvm::all_of(term.monomial, [&](auto factor) {
                    return get(factor.first).isFinite && factor.second > 0;
                  });
    return isZero ? algebra.integer(0)
                  : algebra.product(term.coefficient, term.monomial);
  });
  if (added != a)
    return get(algebra.squareRoot(added));
  // The root of x y is that of x times that of y if x is positive, whatever y
  // is.
  Real outside = getNumber({1, 1});
  Monomial common;
  if (!a->isZero())
    for (auto [base, exponent] : a->getTerms()[0].monomial) {
      const Real &number = get(base);
      bool isEverywhere = llvm::all_of(
          a->getTerms(), [&, b = base, e = exponent](const Term &term) {
            return llvm::is_contained(term.monomial, std::pair(b, e));
          });
      if (!isEverywhere || !number.isFinite || !number.bounds.isPositive())
        continue;
      common.push_back({base, exponent});
      outside = multiply(outside, raise(rootOf(get(base)), exponent));
    }
  Expr inside = algebra.mapTerms(a, [&](const Term &term) {
    Monomial rest;
    for (auto factor : term.monomial)
      if (!llvm::is_contained(common, factor))
        rest.push_back(factor);
    return algebra.product(term.coefficient, rest);
  });
  const Real rest = get(inside);
  if (rest.isFinite && rest.bounds.isNotNegative())
    return multiply(outside, rootOf(rest));
  Real root = keep("sqrt", rest, std::nullopt);
  root.bounds = Bounds::ofAllFrom0();
  return multiply(outside, root);
}

/// Of |a|, which is finite.
RealNumbers::Real RealNumbers::magnitude(const Real &a) {
  if (a.bounds.isNotNegative())
    return a;
  Real size = a;
  size.bounds = getMagnitude(a.bounds);
  size.over = a.bounds.isNotPositive()
                  ? atoms.negate(a.over)
                  : makeRoot(reduce(atoms.multiply(a.over, a.over)),
                             Bounds::ofAllFrom0())
                        .over;
  return size;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

const RealNumbers::Real &RealNumbers::get(Expr a) {
  auto it = known.find(a);
  if (it == known.end()) {
    Real real = compute(a);
    it = known.try_emplace(a, std::move(real)).first;
  }
  return it->second;
}

const RealNumbers::Real &RealNumbers::get(BaseRef base) {
  auto it = knownBases.find(base);
  if (it == knownBases.end()) {
    Real real = compute(base);
    it = knownBases.try_emplace(base, std::move(real)).first;
  }
  return it->second;
}

RealNumbers::Real RealNumbers::compute(Expr a) {
  llvm::SmallVector<Real> addends;
  for (const Term &term : a->getTerms())
    addends.push_back(compute(term));
  Real sum = add(addends);
  sum.bounds = findBounds(a);
  return sum;
}

/// Terms that differ in constants only are one product: x - x / 4 is not
/// negative if x is not.
Bounds RealNumbers::findBounds(Expr a) {
  auto isConstant = [](auto factor) {
    return factor.first->kind == BaseKind::constant;
  };
  std::map<std::vector<std::pair<unsigned, int64_t>>, std::pair<Bounds, Bounds>>
      products;
  for (const Term &term : a->getTerms()) {
    Monomial rest = term.monomial, constants;
    llvm::erase_if(rest, isConstant);
    llvm::copy_if(term.monomial, std::back_inserter(constants), isConstant);
    std::vector<std::pair<unsigned, int64_t>> key;
    for (auto [base, exponent] : rest)
      key.push_back({base->index, exponent});
    auto &[factor, product] =
        products
            .try_emplace(std::move(key), Bounds::ofNumber(0),
                         compute({{1, 1}, rest}).bounds)
            .first->second;
    factor = prove::add(factor, compute({term.coefficient, constants}).bounds);
  }
  Bounds sum = Bounds::ofNumber(0);
  for (auto &[key, product] : products)
    sum = prove::add(sum, prove::multiply(product.first, product.second));
  return sum;
}

RealNumbers::Real RealNumbers::compute(const Term &term) {
  // What is divided by a number that may be 0 is one number, not a sum.
  bool isFinite = llvm::all_of(term.monomial, [&](auto factor) {
    return isDividedSum(factor.first) || factor.second > 0 ||
           (get(factor.first).isFinite && get(factor.first).bounds.hasSign());
  });
  Real product = getNumber(term.coefficient);
  for (auto [base, exponent] : term.monomial) {
    const Real number =
        isFinite && isDividedSum(base) ? get(base->operands[0]) : get(base);
    product = multiply(product, raise(number, exponent));
  }
  return product;
}

/// The operation |name| of |operands|, which is one variable wherever it
/// stands. Without |bounds| it may be nan or infinite.
RealNumbers::Real RealNumbers::keep(llvm::StringRef name,
                                    llvm::ArrayRef<Real> operands,
                                    std::optional<Bounds> bounds) {
  auto withLost = [&](Real result) {
    for (const Real &operand : operands)
      result.lostBits = std::max(result.lostBits, operand.lostBits);
    return result;
  };
  for (const Operation &operation : operations) {
    if (operation.name != name || operation.operands.size() != operands.size())
      continue;
    bool isSame = true;
    for (auto [a, b] : llvm::zip_equal(operation.operands, operands))
      isSame = isSame && areEqual(a, b);
    if (!isSame && isSymmetric(name) && operands.size() == 2)
      isSame = areEqual(operation.operands[0], operands[1]) &&
               areEqual(operation.operands[1], operands[0]);
    if (isSame)
      return withLost(operation.result);
  }
  operations.push_back(
      {name.str(), {operands.begin(), operands.end()}, makeAtom(bounds)});
  return withLost(operations.back().result);
}

RealNumbers::Real RealNumbers::compute(BaseRef base) {
  if (auto bounds = facts.find(base))
    return makeAtom(bounds);
  if (base->kind != BaseKind::operation)
    return makeAtom(std::nullopt);
  if (base->name == "sqrt")
    return squareRoot(base->operands[0]);
  llvm::SmallVector<Real, 3> x;
  bool isFinite = true;
  for (Expr operand : base->operands) {
    x.push_back(get(operand));
    isFinite &= x.back().isFinite;
  }
  auto keepWith = [&](std::optional<Bounds> bounds) {
    return keep(base->name, x, bounds);
  };
  llvm::StringRef name = base->name;
  if (name == "addf")
    return add(x);
  if (name == "mulf")
    return multiply(x[0], x[1]);
  if (name == "inverse")
    return raise(x[0], -1);
  if (name == "divf" && isFinite && x[0].bounds.isNotZero()) // by itself
    return getNumber({1, 1});
  if (name == "subf" && isFinite) // minus itself
    return getNumber({0, 1});
  if (name == "absf" && isFinite)
    return magnitude(x[0]);
  if (name == "andi" || name == "ori" || name.starts_with("cmpf "))
    return keepWith(Bounds{0, 1});
  // A number, whichever is selected.
  if (name == "select" && x[1].isFinite && x[2].isFinite)
    return keepWith(unite(x[1].bounds, x[2].bounds));
  if (isFinite && (name == "minimumf" || name == "minnumf"))
    return keepWith(minimum(x[0].bounds, x[1].bounds));
  if (isFinite && (name == "maximumf" || name == "maxnumf"))
    return keepWith(maximum(x[0].bounds, x[1].bounds));
  return keepWith(std::nullopt);
}
