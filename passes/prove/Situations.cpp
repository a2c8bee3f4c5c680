//===- Situations.cpp - The outcome in each situation ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An outcome is derived by ranges: for all sums, finite or not, all numbers of
// tokens, of backward passes and of missing gradients. Numbers are tried only
// where ranges do not tell, to show why.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Counts.h"
#include "passes/prove/StepSemantics.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"

#include <cmath>
#include <set>

using namespace mlir;
using namespace zero;
using namespace zero::prove;

namespace {
/// Numbers of backward passes and sizes that lead to a situation.
struct Draw {
  int64_t backwards; // on most ranks
  int64_t first;     // on rank 0, if they are unequal
  int64_t second;    // on rank 1, if they are unequal and there are more ranks
  int64_t missing;   // on rank 0, if gradients are missing
  double sum;        // over elements, about
  double tokens;     // of all ranks
  double noTokens;   // an invalid number of tokens
};
/// A value of one sum, or of all.
struct Choice {
  BaseRef sum; // null: all
  double value;
};
/// The rank that evaluates the outcome: the first, the second or another one.
enum class Viewer { first, second, other };

/// Finds the outcome in each situation.
class Decider {
public:
  Decider(Proof &proof, Operation *op, Expr outcome,
          const StepSemantics &semantics);

  std::optional<Outcomes> run();

private:
  bool isOneNumber(Situation situation, std::optional<double> &decided);
  void explain(Situation situation);
  double evaluate(Situation situation, const Draw &draw,
                  std::optional<Choice> choice, Viewer viewer);
  Range evaluateAll(Situation situation, std::optional<Choice> infection,
                    std::optional<Range> noTokens);
  std::vector<Draw> makeDraws();
  std::optional<double> getValue(BaseRef base, Situation situation,
                                 const Draw &draw, Viewer viewer);

  Proof &proof;
  Operation *op;
  Expr outcome;
  const StepSemantics &semantics;
  int64_t ranks;
  SmallVector<BaseRef> kinds;
  SmallVector<Viewer> viewers;
};
} // namespace

/// Finite sums and numbers of tokens are at most 2 to the power of this. The
/// squares of 2^40 numbers of f32 are far less, and a sum of such sums, or a
/// small multiple, is no more than f64 holds.
static constexpr int kLargestExponent = 960;
/// Fewer tokens are none, whatever small multiple of them is compared.
static constexpr int kNoTokensExponent = -1030;

/// Whether a sum is one of squares, and so not negative.
static bool isOfSquares(BaseRef sum) {
  ArrayRef<Term> terms = sum->operands[0]->getTerms();
  return llvm::all_of(terms, [](const Term &term) {
    return term.coefficient.numerator >= 0 &&
           llvm::all_of(term.monomial,
                        [](auto factor) { return factor.second % 2 == 0; });
  });
}

/// More kinds of sums than this in one outcome are not tried.
static constexpr size_t kMostKinds = 64;

/// One of each kind of sums in |outcome|. Sums of a kind may have the same
/// values, and stand in the same places: in the same numbers, with the same
/// power and sign, times the same. So the outcome is the same number whichever
/// of them is not finite.
static SmallVector<BaseRef> findKinds(Expr outcome) {
  // Where a sum stands, as a hash: the number, and its term without the sum.
  llvm::MapVector<BaseRef, std::vector<size_t>> places;
  llvm::DenseSet<Expr> seen;
  SmallVector<Expr> stack{outcome};
  while (!stack.empty()) {
    Expr top = stack.pop_back_val();
    if (!seen.insert(top).second)
      continue;
    for (const Term &term : top->getTerms())
      for (auto [sum, exponent] : term.monomial) {
        if (sum->kind != BaseKind::sumOver) {
          llvm::append_range(stack, sum->operands);
          continue;
        }
        int64_t numerator = term.coefficient.numerator;
        llvm::hash_code place =
            llvm::hash_combine(isOfSquares(sum), top->getIndex(), exponent,
                               numerator > 0, numerator < 0);
        for (auto [base, power] : term.monomial)
          if (base != sum)
            place = llvm::hash_combine(place, base->index, power);
        places[sum].push_back(place);
      }
  }
  SmallVector<BaseRef> kinds;
  std::set<std::vector<size_t>> known;
  for (auto &[sum, where] : places) {
    llvm::sort(where);
    if (known.insert(std::move(where)).second)
      kinds.push_back(sum);
  }
  return kinds;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The number of missing gradients on rank 0.
static double getMissing(Situation situation, const Draw &draw) {
  return double(situation.belowZero ? -draw.missing : draw.missing);
}

/// The value of |base|; nothing if it follows from others.
std::optional<double> Decider::getValue(BaseRef base, Situation situation,
                                        const Draw &draw, Viewer viewer) {
  bool unequal = situation.unequal;
  auto first = double(unequal ? draw.first : draw.backwards);
  auto second = double(unequal && ranks > 2 ? draw.second : draw.backwards);
  auto other = double(draw.backwards);
  switch (base->kind) {
  case BaseKind::sumOver:
    return (isOfSquares(base) || base->index % 2 ? 1 : -1) * draw.sum *
           (1 + double(base->index % 1021) / 1024);
  case BaseKind::rankSum: {
    // The sum over the ranks of a power of each rank's count. See sumOverRanks.
    auto [counted, power] = base->operands[0]->getTerms()[0].monomial[0];
    auto exponent = double(power);
    if (counted->kind == BaseKind::missing)
      return situation.missing ? std::pow(getMissing(situation, draw), exponent)
                               : 0;
    double sum = std::pow(first, exponent);
    if (ranks > 1)
      sum += std::pow(second, exponent);
    return sum +
           double(std::max<int64_t>(ranks - 2, 0)) * std::pow(other, exponent);
  }
  case BaseKind::missing:
    return situation.missing ? getMissing(situation, draw) : 0;
  case BaseKind::delivered: // no outcome may depend on it
    return 1;
  case BaseKind::tokens:
    return situation.noTokens ? draw.noTokens : draw.tokens;
  case BaseKind::symbol:
    if (base->name == kTokens)
      return situation.noTokens ? draw.noTokens : draw.tokens;
    return viewer == Viewer::first    ? first
           : viewer == Viewer::second ? second
                                      : other;
  default:
    return std::nullopt;
  }
}

/// The outcome, with the value of |choice| for its sums.
double Decider::evaluate(Situation situation, const Draw &draw,
                         std::optional<Choice> choice, Viewer viewer) {
  return proof.algebra.evaluate(outcome, [&](BaseRef base) {
    if (choice && base->kind == BaseKind::sumOver &&
        (!choice->sum || choice->sum == base))
      return std::optional(isOfSquares(base) ? std::abs(choice->value)
                                             : choice->value);
    return getValue(base, situation, draw, viewer);
  });
}

/// Each kind of numbers by which gradients cannot be divided.
static ArrayRef<Range> getNoTokens() {
  using Limits = std::numeric_limits<double>;
  static const Range ranges[] = {
      Range::ofNumber(NAN), Range{-Limits::infinity(), 0},
      Range{Limits::denorm_min(), std::ldexp(1, kNoTokensExponent)},
      Range::ofNumber(Limits::infinity())};
  return ranges;
}

/// The outcome for all counts in |situation|, and for all finite sums, or for
/// all sums beside an |infection|. There are |noTokens|, or any number of them
/// that gradients can be divided by.
Range Decider::evaluateAll(Situation situation, std::optional<Choice> infection,
                           std::optional<Range> noTokens) {
  using Limits = std::numeric_limits<double>;
  const double largest = std::ldexp(1, kLargestExponent);
  return evaluateRange(outcome, [&](BaseRef base) -> std::optional<Range> {
    if (base->kind == BaseKind::sumOver) {
      bool isOfSquares = ::isOfSquares(base);
      if (infection && infection->sum == base)
        return Range::ofNumber(isOfSquares ? std::abs(infection->value)
                                           : infection->value);
      if (infection)
        return isOfSquares ? Range::ofAllFrom0() : Range::ofAll();
      return Range{isOfSquares ? 0 : -largest, largest};
    }
    if (isTokens(base))
      return noTokens.value_or(Range{Limits::min(), largest});
    if (isCount(base)) {
      Range range = getRangeOfCounts(proof.algebra,
                                     proof.algebra.product({1, 1}, {{base, 1}}),
                                     situation, ranks);
      // A count times a finite sum is finite.
      if (base->kind == BaseKind::symbol)
        range.most = std::min(range.most, std::ldexp(1, kBackwardsExponent));
      return range;
    }
    // Two numbers that depend on the same counts: by their difference.
    if (base->kind == BaseKind::operation &&
        StringRef(base->name).starts_with("cmpf ") &&
        llvm::all_of(base->operands, isOfCounts)) {
      Expr difference =
          proof.algebra.subtract(base->operands[0], base->operands[1]);
      return compareRanges(
          base->name,
          getRangeOfCounts(proof.algebra, difference, situation, ranks),
          Range::ofNumber(0));
    }
    return std::nullopt;
  });
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

Decider::Decider(Proof &proof, Operation *op, Expr outcome,
                 const StepSemantics &semantics)
    : proof(proof), op(op), outcome(outcome), semantics(semantics),
      ranks(semantics.getNumRanks()), kinds(findKinds(outcome)),
      viewers{Viewer::first} {
  bool hasOwnCount = false;
  visitBases(outcome, [&](BaseRef base) {
    hasOwnCount |=
        base->kind == BaseKind::symbol && base->name == kAccumulation;
  });
  if (hasOwnCount && ranks > 1)
    viewers.push_back(Viewer::second);
  if (hasOwnCount && ranks > 2)
    viewers.push_back(Viewer::other);
}

/// What makes a gradient that is not finite of each sum in |kinds|. There is
/// one choice of nothing if they are finite, or if there are none.
static SmallVector<std::optional<Choice>>
getInfections(Situation situation, ArrayRef<BaseRef> kinds) {
  SmallVector<std::optional<Choice>> infections;
  if (situation.nonfinite)
    for (BaseRef kind : kinds)
      for (double value : {double(NAN), double(INFINITY), -double(INFINITY)})
        if (!(value < 0 && isOfSquares(kind)))
          infections.push_back(Choice{kind, value});
  if (infections.empty())
    infections.push_back(std::nullopt);
  return infections;
}

/// Whether the outcome is one number in |situation|, which is |decided|.
bool Decider::isOneNumber(Situation situation, std::optional<double> &decided) {
  if (situation.missing && ranks > 1 && !situation.belowZero) {
    Situation below = situation;
    below.belowZero = true;
    if (!isOneNumber(below, decided))
      return false;
  }
  auto decide = [&](std::optional<Choice> infection,
                    std::optional<Range> noTokens) {
    Range all = evaluateAll(situation, infection, noTokens);
    bool isOne = all.isOne() && (!decided || *decided == all.least);
    decided = all.least;
    return isOne;
  };
  return llvm::all_of(
      getInfections(situation, kinds), [&](std::optional<Choice> infection) {
        if (!situation.noTokens)
          return decide(infection, std::nullopt);
        return llvm::all_of(getNoTokens(), [&](const Range &noTokens) {
          return decide(infection, noTokens);
        });
      });
}

/// Numbers that show what an outcome depends on. Some have one count that is
/// the mean of the others. The last ones have counts near those that the
/// outcome compares with.
std::vector<Draw> Decider::makeDraws() {
  std::vector<Draw> draws = {
      {1, 2, 1, 1, 1.0, 1, 0},           {3, 2, 4, 2, 1e30, 4.5e15, -1},
      {4, 7, 4, 7, 0.0, 0.25, INFINITY}, {7, 1, 13, 1, 1e-40, 1e-300, NAN},
      {2, 16, 3, 5, 1e5, 1e300, 1e-310},
  };
  std::set<int64_t> counts;
  visitBases(outcome, [&](BaseRef base) {
    constexpr int64_t kMost = 1 << 20;
    constexpr size_t kMostCounts = 64;
    for (Expr operand : base->operands)
      if (auto number = operand->asRational();
          number && std::abs(number->numerator) < kMost)
        for (int64_t divisor : {int64_t(1), ranks})
          for (int64_t near : {-1, 0, 1}) {
            int64_t count =
                number->numerator / (number->denominator * divisor) + near;
            if (count > 0 && counts.size() < kMostCounts)
              counts.insert(count);
          }
  });
  for (int64_t count : counts)
    draws.push_back(
        {count, count + 1, count, count, 1.0, double(count), -double(count)});
  return draws;
}

/// The numbers with which an outcome is evaluated.
static std::string describeGiven(Situation situation, const Draw &draw,
                                 std::optional<Choice> choice) {
  std::string text;
  llvm::raw_string_ostream os(text);
  double sum = choice ? choice->value : draw.sum;
  if (choice)
    os << (choice->sum ? "a sum over '" + choice->sum->name + "' is "
                       : "each sum over elements is ");
  else
    os << "sums over elements are about ";
  os << llvm::format("%g", std::isnan(sum) ? double(NAN) : sum) << ", "
     << draw.backwards << " backward passes";
  if (situation.unequal)
    os << " (" << draw.first << " on rank 0)";
  os << llvm::format(", %g tokens",
                     situation.noTokens ? draw.noTokens : draw.tokens);
  if (situation.missing && situation.belowZero)
    os << ", inputs that differ (" << -draw.missing << " in place of a number "
       << "of missing gradients)";
  else if (situation.missing)
    os << ", " << draw.missing << " missing on rank 0";
  return text;
}

/// Reports numbers that lead to other outcomes in |situation|.
void Decider::explain(Situation situation) {
  std::optional<double> decided;
  /// Reports a value that is not the one that is |decided|.
  auto differs = [&](double value, const llvm::Twine &reason,
                     const std::string &given) {
    if (!decided)
      decided = value;
    if (*decided == value)
      return false;
    auto error = proof.report.consequence(op);
    error << "where " << describe(situation) << ", the outcome is "
          << describeOutcome(*decided) << " or " << describeOutcome(value)
          << reason << ": it depends on more than that, or ranks disagree";
    error.attach("counterexample: " + given + "; the outcome is " +
                 describeOutcome(value));
    return true;
  };
  SmallVector<std::optional<Choice>> infections;
  if (situation.nonfinite && !kinds.empty())
    for (double value : {double(NAN), double(INFINITY), -double(INFINITY)})
      if (!(value < 0 && llvm::all_of(kinds, isOfSquares)))
        infections.push_back(Choice{nullptr, value});
  llvm::append_range(infections, getInfections(situation, kinds));
  std::vector<Draw> draws = makeDraws();
  SmallVector<Situation> variants{situation};
  if (situation.missing && ranks > 1)
    variants.emplace_back(situation).belowZero = true;
  for (const Draw &draw : draws)
    for (const Situation &variant : variants)
      for (std::optional<Choice> infection : infections)
        for (Viewer viewer : viewers)
          if (differs(evaluate(variant, draw, infection, viewer),
                      infection && infection->sum
                          ? " (a gradient of '" + infection->sum->name + "')"
                          : std::string(),
                      describeGiven(variant, draw, infection)))
            return;
  // Finite sums of every size, alone and together.
  SmallVector<BaseRef> sums{nullptr};
  llvm::append_range(sums, kinds);
  constexpr int kStep = 8;
  for (BaseRef sum : situation.nonfinite ? ArrayRef<BaseRef>() : sums)
    for (int exponent = -1072; exponent <= kLargestExponent; exponent += kStep)
      for (double sign : {1.0, -1.0}) {
        double value = sign * std::ldexp(1, exponent);
        std::string reason;
        llvm::raw_string_ostream(reason)
            << " (where "
            << (sum ? "a sum over '" + sum->name + "'"
                    : std::string("each sum over elements"))
            << " is " << llvm::format("%g", value) << ")";
        if (differs(evaluate(situation, draws[0], Choice{sum, value},
                             Viewer::first),
                    reason,
                    describeGiven(situation, draws[0], Choice{sum, value})))
          return;
      }
  proof.report.consequence(op)
      << "where " << describe(situation)
      << ", the proof does not know that the outcome is "
      << describeOutcome(*decided)
      << " for all sums of gradients, backward passes and tokens";
}

std::optional<Outcomes> Decider::run() {
  if (kinds.size() > kMostKinds) {
    proof.report.consequence(op)
        << "the outcome treats gradients in " << kinds.size()
        << " ways, at most " << kMostKinds << " are known to the proof";
    return std::nullopt;
  }
  Outcomes outcomes = {};
  for (int i = 0; i < kNumSituations; ++i) {
    Situation situation = getSituation(i);
    if (!mayHappen(situation, semantics))
      continue;
    std::optional<double> decided;
    if (!isOneNumber(situation, decided)) {
      explain(situation);
      return std::nullopt;
    }
    outcomes[i] = *decided;
  }
  return outcomes;
}

std::optional<Outcomes> prove::decideOutcome(Proof &proof, Operation *op,
                                             Expr outcome,
                                             const StepSemantics &semantics) {
  return Decider(proof, op, outcome, semantics).run();
}
