//===- StepSemantics.cpp - What all readers share -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/StepSemantics.h"

#include "passes/prove/RelativeError.h"

#include <limits>

using namespace mlir;
using namespace zero;
using namespace zero::prove;

const Number *IntervalSemantics::find(StringRef role) const {
  for (auto &[name, number] : roles)
    if (name == role)
      return &number;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

MeshAxes::MeshAxes(MeshOp mesh) {
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
    if (axis.getSize() > 1)
      axes.push_back({axis.getName().str(), axis.getSize()});
}

AxisSet MeshAxes::getSet(ArrayRef<StringAttr> names) const {
  AxisSet set = 0;
  for (auto [i, axis] : llvm::enumerate(axes))
    for (StringAttr name : names)
      if (name.getValue() == axis.first)
        set |= AxisSet(1) << i;
  return set;
}

AxisSet MeshAxes::getSet(ArrayAttr names) const {
  return getSet(SmallVector<StringAttr>(names.getAsRange<StringAttr>()));
}

int64_t MeshAxes::getNumRanks(AxisSet set) const {
  int64_t ranks = 1;
  for (auto [i, axis] : llvm::enumerate(axes))
    if (set >> i & 1)
      ranks *= axis.second;
  return ranks;
}

std::string MeshAxes::describe(AxisSet set) const {
  std::string text;
  for (auto [i, axis] : llvm::enumerate(axes))
    if (set >> i & 1)
      text += (text.empty() ? "'" : " and '") + axis.first + "'";
  return text;
}

std::vector<std::string> MeshAxes::getNames() const {
  std::vector<std::string> names;
  for (auto &[name, ranks] : axes)
    names.push_back(name);
  return names;
}

bool prove::readMesh(Proof &proof, Operation *step, MeshOp mesh,
                     StepSemantics &semantics) {
  if (!mesh) {
    proof.report.opError(step) << "is on no mesh of this module";
    return false;
  }
  semantics.step = step;
  semantics.axes = MeshAxes(mesh);
  llvm::append_range(semantics.activations,
                     step->getParentOfType<ModuleOp>().getOps<ActivationOp>());
  proof.algebra.setAxisNames(semantics.axes.getNames());
  return true;
}

void StepSemantics::addMeeting(ArrayRef<AxisCoordinate> stages, AxisSet set) {
  if (stages.empty())
    meetsOver |= set;
  else if (set)
    meetsOnStages.push_back({stages, set});
}

AxisSet StepSemantics::getMeetings(ArrayRef<AxisCoordinate> stages) const {
  AxisSet set = meetsOver;
  for (auto &[others, over] : meetsOnStages)
    if (others == stages)
      set |= over;
  return set;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Expr prove::getMonomial(Algebra &algebra, MeshOp mesh,
                        ArrayRef<ScaleFactor> factors, Expr tokens,
                        Expr lossScale) {
  Expr product = algebra.integer(1);
  for (const ScaleFactor &factor : factors) {
    Expr base;
    if (auto size = mesh.getAxisSize(factor.symbol.getValue()))
      base = algebra.integer(*size);
    else if (tokens && factor.symbol.getValue() == kTokens)
      base = tokens;
    else if (lossScale && factor.symbol.getValue() == kLossScale)
      base = lossScale;
    else
      base = algebra.symbol(factor.symbol.getValue());
    product = algebra.multiply(product, algebra.power(base, factor.exponent));
  }
  return product;
}

Expr prove::getInput(Algebra &algebra, size_t index,
                     const InputSemantics &input) {
  if (input.isTokens)
    return algebra.base(
        {BaseKind::tokens, kTokens.str(), Epoch::all, input.over});
  return algebra.base({BaseKind::input, "input " + std::to_string(index),
                       Epoch::all, input.over,
                       /*value=*/input.isPositive ? 1.0 : 0.0});
}

static bool isSummedCount(BaseRef base) {
  return base->kind == BaseKind::missing || base->kind == BaseKind::delivered ||
         (base->kind == BaseKind::symbol && base->name == kAccumulation);
}

/// The axes over which ranks may have different numbers for |base|, the number
/// of their backward passes among them.
static AxisSet getDifference(BaseRef base, const MeshAxes &axes) {
  return base->hasOwnCount ? axes.getAll() : base->own;
}

Expr prove::getMissing(Algebra &algebra, const MeshAxes &axes) {
  return algebra.base({BaseKind::missing, "", Epoch::all, axes.getAll()});
}

Expr prove::getDelivered(Algebra &algebra, StringRef parameter,
                         const MeshAxes &axes) {
  return algebra.base(
      {BaseKind::delivered, parameter.str(), Epoch::all, axes.getAll()});
}

/// The sum over the ranks of |set| of |base| to the power of |exponent|, if no
/// other factor of its term differs over |set|. Null if it is not known.
static Expr sumAddend(Algebra &algebra, BaseRef base, int64_t exponent,
                      const MeshAxes &axes, AxisSet set) {
  // A count of backward passes is not an addend, but its sum over ranks is a
  // base.
  if (isSummedCount(base) && exponent > 0)
    return algebra.base({BaseKind::rankSum,
                         "",
                         Epoch::all,
                         axes.getAll() & ~set,
                         0,
                         {algebra.product({1, 1}, {{base, exponent}})}});
  // A base whose operands differ between ranks is not an addend.
  bool isAddend =
      exponent == 1 && (base->over & set) == set &&
      llvm::none_of(base->operands, [&](Expr operand) {
        return base->kind != BaseKind::rankSum && (operand->getOwn() & set);
      });
  if (!isAddend)
    return nullptr;
  Base summed = *base;
  summed.over &= ~set;
  if (base->kind == BaseKind::once && summed.over == 0)
    return algebra.integer(1);
  return algebra.base(std::move(summed));
}

/// The sum over the ranks of |set| of |term|; null if it is not known.
static Expr sumOverRanks(Algebra &algebra, const Term &term,
                         const MeshAxes &axes, AxisSet set, AxisSet stages) {
  SmallVector<Expr, 1> sums;
  Monomial rest;
  AxisSet seen = 0;
  for (auto [base, exponent] : term.monomial) {
    AxisSet differing = getDifference(base, axes) & set;
    if (differing == 0) {
      rest.push_back({base, exponent});
      continue;
    }
    // A product of two that differ per rank is no product of their sums.
    if (seen & differing)
      return nullptr;
    seen |= differing;
    sums.push_back(sumAddend(algebra, base, exponent, axes, differing));
    if (!sums.back())
      return nullptr;
  }
  Expr product = algebra.product(term.coefficient, rest);
  for (Expr sum : sums)
    product = algebra.multiply(product, sum);
  // Over the remaining axes all ranks have the same number.
  AxisSet alike = set & ~seen;
  if (alike & stages)
    return nullptr;
  return alike ? algebra.multiply(product,
                                  algebra.integer(axes.getNumRanks(alike)))
               : product;
}

/// |lostBits|, if it is not null, gets the digits that the sum loses.
static Expr sumOverRanks(Algebra &algebra, Expr a, const MeshAxes &axes,
                         AxisSet set, AxisSet stages, double *lostBits) {
  SmallVector<Expr> addends;
  Expr sum = algebra.mapTerms(a, [&](const Term &term) {
    addends.push_back(::sumOverRanks(algebra, term, axes, set, stages));
    return addends.back();
  });
  if (sum && lostBits)
    *lostBits = getLostBits(algebra, addends, sum);
  return sum ? sum
             : algebra.undefined(
                   "a sum over ranks of numbers that are no shares of a sum");
}

Expr prove::sumOverRanks(Algebra &algebra, Expr a, const MeshAxes &axes,
                         AxisSet set, AxisSet stages) {
  return ::sumOverRanks(algebra, a, axes, set, stages, /*lostBits=*/nullptr);
}

/// Whether |a| is a multiple of a gradient as it arrives: summed over no axis
/// of those that it |arrivesOver|, and with nothing that was there before.
static bool isUnreduced(Expr a, AxisSet arrivesOver) {
  return llvm::all_of(a->getTerms(), [&](const Term &term) {
    return llvm::all_of(term.monomial, [&](auto factor) {
      auto [base, exponent] = factor;
      return !base->isElement || (base->kind == BaseKind::gradient &&
                                  exponent == 1 && base->over == arrivesOver);
    });
  });
}

Number prove::sumOverRanks(Algebra &algebra, Number a, AxisSet arrivesOver,
                           Precision sumType, const MeshAxes &axes, AxisSet set,
                           AxisSet stages) {
  if (isUnreduced(a.expr, arrivesOver))
    a.travel();
  a.beforeConversion.reset();
  a.way = a.getWayOfSum(set);
  double lostBits = 0;
  a.expr = ::sumOverRanks(algebra, a.expr, axes, set, stages, &lostBits);
  a.lose(lostBits);
  loseDigits(a, lostBits);
  a.narrow(sumType);
  return a;
}

Expr prove::countReplicatedOnce(Algebra &algebra, Expr a, AxisSet set) {
  if (set == 0)
    return a;
  // The first over some axes and over others is the first over all of them.
  return algebra.mapTerms(a, [&](const Term &term) {
    AxisSet first = set;
    Monomial rest;
    for (auto [base, exponent] : term.monomial) {
      if (base->kind == BaseKind::once && exponent > 0)
        first |= base->over;
      else
        rest.push_back({base, exponent});
    }
    return algebra.multiply(
        algebra.product(term.coefficient, rest),
        algebra.base({BaseKind::once, "", Epoch::all, first}));
  });
}

Precision prove::getAddendType(const Number &addend, Precision kept) {
  Precision type = addend.roundings.getNarrowest(SourceKind::gradient);
  return type.holds(kept) ? Precision() : type;
}

Number prove::makeSum(Algebra &algebra, Expr sum, Roundings roundings) {
  Number number{sum};
  number.roundings = roundings.summed(algebra.getRoundings());
  number.skipped = number.roundings;
  number.narrow(Precision::f64());
  return number;
}

Expr prove::sumOverElements(Algebra &algebra, Expr element, StringRef parameter,
                            AxisSet over, Precision computedIn,
                            bool isTakenThere) {
  unsigned bits = computedIn.mantissa;
  constexpr unsigned kF64Bits = 53;
  Expr sum = algebra.mapTerms(element, [&](const Term &term) {
    Monomial scalars, elements;
    for (auto factor : term.monomial)
      (factor.first->isElement ? elements : scalars).push_back(factor);
    Expr each = algebra.product({1, 1}, elements);
    return algebra.multiply(
        algebra.product(term.coefficient, scalars),
        algebra.base({BaseKind::sumOver,
                      parameter.str(),
                      Epoch::all,
                      over,
                      double(bits < kF64Bits && isTakenThere),
                      {each},
                      bits < kF64Bits ? bits : 0}));
  });
  return sum;
}

Expr prove::replaceUnlessDivisor(Algebra &algebra, Expr number, Expr instead,
                                 Expr result) {
  // A selection between equal numbers has no effect. See evaluateBody.
  if (instead == result)
    return result;
  using Limits = std::numeric_limits<double>;
  for (auto [compare, limit] : {std::pair("cmpf ult", Limits::min()),
                                std::pair("cmpf ugt", Limits::max())})
    result = algebra.operation(
        "select",
        {algebra.operation(compare, {number, algebra.constant(limit)}), instead,
         result});
  return result;
}

std::string prove::describeUnknown(Expr a) {
  std::string found;
  if (!a->isUndefined() && a->getOwn() == 0)
    return found;
  visitBases(a, [&](BaseRef base) {
    if (base->kind == BaseKind::undefined)
      found = base->name;
    else if (found.empty() && !a->isUndefined() && base->own &&
             llvm::none_of(base->operands,
                           [](Expr operand) { return operand->getOwn(); }))
      found = "what one rank alone knows, " + toString(base);
  });
  return found;
}

static void joinRoundings(Number &number, const Number &other) {
  auto beforeConversion = number.beforeConversion;
  number.narrowAs(other);
  number.beforeConversion = beforeConversion;
}

/// Calls |join| for each number of |semantics| and the same one of |other|, as
/// far as both have it.
static void
joinNumbers(StepSemantics &semantics, const StepSemantics &other,
            llvm::function_ref<void(Number &, const Number &)> join) {
  using Scalars = SmallVector<std::pair<std::string, Number>>;
  for (Scalars StepSemantics::*scalars :
       {&StepSemantics::counters, &StepSemantics::results,
        &StepSemantics::skipped})
    for (auto [number, same] : llvm::zip(semantics.*scalars, other.*scalars))
      join(number.second, same.second);
  for (auto &[name, parameter] : semantics.parameters) {
    auto it = other.parameters.find(name);
    if (it == other.parameters.end())
      continue;
    parameter.summedReduceDtype =
        parameter.summedReduceDtype.limitedBy(it->second.summedReduceDtype);
    ArrayRef<IntervalSemantics> others = it->second.intervals;
    for (IntervalSemantics &interval : parameter.intervals) {
      while (!others.empty() && others.front().end <= interval.begin)
        others = others.drop_front();
      for (const IntervalSemantics &same : others) {
        if (same.begin >= interval.end)
          break;
        for (auto [number, theirs] : llvm::zip(interval.roles, same.roles))
          join(number.second, theirs.second);
      }
    }
  }
}

void prove::joinReduceDtypes(StepSemantics &semantics,
                             const StepSemantics &other) {
  joinNumbers(semantics, other, [](Number &number, const Number &same) {
    number.reduceDtype = number.reduceDtype.limitedBy(same.reduceDtype);
  });
}

void prove::joinRoundings(StepSemantics &semantics,
                          const StepSemantics &other) {
  joinNumbers(semantics, other, ::joinRoundings);
  semantics.decidedBy = semantics.decidedBy.limitedBy(other.decidedBy);
  semantics.rounding = semantics.rounding ? semantics.rounding : other.rounding;
}

std::optional<StepSemantics> prove::readSemantics(Proof &proof,
                                                  ModuleOp module) {
  auto steps = llvm::to_vector(module.getOps<StepOp>());
  auto programs = llvm::to_vector(module.getOps<zrt::ProgramOp>());
  if (steps.size() + programs.size() != 1) {
    proof.report.error(module) << "one step can be proved at a time, found "
                               << steps.size() + programs.size();
    return std::nullopt;
  }
  std::optional<StepSemantics> semantics =
      steps.empty() ? readProgram(proof, programs.front())
                    : readStep(proof, steps.front());
  // An error of an op explains more than a gradient that does not arrive.
  if (!proof.report.hasErrors() &&
      failed(zrt::verifyParameters(
          module, [&](Operation *op) { return proof.report.error(op); })))
    return std::nullopt;
  return semantics;
}
