//===- Verdict.cpp - When a step is applied -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A verdict is a number that a scalar program computes, and programs that
// differ may compute the same one. So it is not compared as an expression: it
// is evaluated in each situation that it is about.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Meaning.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;
using namespace zero;
using namespace zero::prove;

Situation prove::getSituation(int index) {
  return {(index & 1) != 0, (index & 2) != 0, (index & 4) != 0};
}

bool prove::mayHappen(Situation situation, const Meaning &meaning) {
  // Without elements there is nothing that is not finite.
  if (situation.nonfinite &&
      llvm::none_of(meaning.parameters, [](const auto &entry) {
        ParameterOp op = entry.second.op;
        return op.getNumElements() > 0;
      }))
    return false;
  // Ranks that wait for each other in each backward make equally many, or stop.
  return !situation.unequal ||
         (meaning.ranks > 1 && !meaning.communicatesInLoop);
}

std::string prove::describe(Situation situation) {
  SmallVector<StringRef> parts;
  if (situation.nonfinite)
    parts.push_back("a gradient is not finite");
  if (situation.missing)
    parts.push_back("a gradient is missing");
  if (situation.unequal)
    parts.push_back("ranks made different numbers of backwards");
  if (parts.empty())
    return "every gradient is finite and arrived, on all ranks alike";
  return llvm::join(parts, " and ");
}

namespace {
/// One way in which a situation comes about.
struct Draw {
  int64_t backwards; // on most ranks
  int64_t first;     // on rank 0, where they are unequal
  int64_t second;    // on rank 1, where they are unequal and there are more
  int64_t missing;   // on rank 0, where gradients are
  double sum;        // over elements, about
  double nonfinite;  // the same, where it is not finite
  unsigned which;    // of the sums are not finite
};
/// The rank that looks at it: the first, the second or another one.
enum class Viewer { first, second, other };
} // namespace

/// What a verdict must not depend on: how many backwards, of what size, and
/// which gradient is not finite. Counts of which one is the mean are among
/// them.
static constexpr Draw kDraws[] = {
    {1, 2, 1, 1, 1.0, NAN, 0},         {2, 3, 1, 1, 0.25, INFINITY, 1},
    {3, 2, 4, 2, 1e30, NAN, 2},        {4, 7, 4, 7, 0.0, INFINITY, 3},
    {7, 1, 13, 1, 1e-40, INFINITY, 4}, {1, 16, 1, 1000, 65536.0, NAN, 5},
    {5, 1, 9, 1, 3.0, NAN, 6},         {2, 1, 3, 5, 1e5, INFINITY, 7},
};

/// Whether the sum with this index is among those that are not finite: a random
/// half, and in the last draws all.
static bool isHit(const Draw &draw, unsigned index) {
  return draw.which == 0 || llvm::hash_combine(draw.which, index) % 2 == 0;
}

/// What the bases of a verdict are in |situation|.
static std::optional<double> getValue(BaseRef base, Situation situation,
                                      const Draw &draw, int64_t ranks,
                                      Viewer viewer) {
  bool unequal = situation.unequal;
  auto first = double(unequal ? draw.first : draw.backwards);
  auto second = double(unequal && ranks > 2 ? draw.second : draw.backwards);
  auto other = double(draw.backwards);
  switch (base->kind) {
  case BaseKind::sumOver:
    if (situation.nonfinite && isHit(draw, base->index))
      return draw.nonfinite;
    return draw.sum * (1 + double(base->index % 1021) / 1024);
  case BaseKind::rankSum: {
    // The sum over the ranks of a power of what each counts: see sumOverRanks.
    auto [counted, power] = base->operands[0]->getTerms()[0].monomial[0];
    auto exponent = double(power);
    if (counted->kind == BaseKind::missing)
      return situation.missing ? std::pow(double(draw.missing), exponent) : 0;
    double sum = std::pow(first, exponent);
    if (ranks > 1)
      sum += std::pow(second, exponent);
    return sum +
           double(std::max<int64_t>(ranks - 2, 0)) * std::pow(other, exponent);
  }
  case BaseKind::missing:
    return situation.missing ? draw.missing : 0;
  case BaseKind::symbol:
    if (base->name != kAccumulation)
      return 3; // any size
    return viewer == Viewer::first    ? first
           : viewer == Viewer::second ? second
                                      : other;
  default:
    return std::nullopt;
  }
}

namespace {
/// What of a verdict the tries depend on.
struct Ingredients {
  std::vector<unsigned> sums; // indices
  bool hasOwnCount = false;   // of backwards
  BaseRef foreign = nullptr;  // what no verdict may depend on
};
} // namespace

static Ingredients getIngredients(Expr verdict) {
  Ingredients found;
  visitBases(verdict, [&](BaseRef base) {
    if (base->kind == BaseKind::sumOver)
      found.sums.push_back(base->index);
    else if (base->kind == BaseKind::symbol)
      found.hasOwnCount |= base->name == kAccumulation;
    else if (base->kind == BaseKind::input || base->kind == BaseKind::old ||
             base->kind == BaseKind::state)
      found.foreign = base;
  });
  return found;
}

/// Parameters whose gradients are squared and summed somewhere in |verdict|.
static llvm::StringSet<> getDomain(Expr verdict) {
  llvm::StringSet<> domain;
  visitBases(verdict, [&](BaseRef base) {
    if (base->kind != BaseKind::sumOver)
      return;
    // A square of the whole gradient, and nothing that could hide it.
    ArrayRef<Term> terms = base->operands[0]->getTerms();
    if (terms.size() != 1 || terms[0].monomial.size() != 1)
      return;
    auto [inner, exponent] = terms[0].monomial[0];
    if (inner->kind == BaseKind::gradient && inner->summed &&
        inner->epoch == Epoch::all && exponent > 0)
      domain.insert(base->name);
  });
  return domain;
}

void prove::readVerdict(Proof &proof, Operation *op, Expr verdict,
                        Meaning &meaning) {
  Ingredients ingredients = getIngredients(verdict);
  if (ingredients.foreign) {
    proof.report.error(op) << "whether the step is applied depends on "
                           << toString(ingredients.foreign);
    return;
  }
  std::string unknown = describeUnknown(verdict, meaning.ranks);
  if (!unknown.empty()) {
    proof.report.error(op) << "ranks may disagree on whether the step is "
                              "applied: the verdict depends on "
                           << unknown;
    return;
  }
  auto [known, isNew] = proof.verdicts.try_emplace(
      {verdict, meaning.ranks, meaning.communicatesInLoop});
  for (int i = 0; i < kNumSituations && isNew; ++i) {
    Situation situation = getSituation(i);
    if (!mayHappen(situation, meaning))
      continue;
    std::optional<double> decided;
    for (const Draw &draw : kDraws) {
      bool isHitBy = ingredients.sums.empty() ||
                     llvm::any_of(ingredients.sums, [&](unsigned index) {
                       return isHit(draw, index);
                     });
      if (situation.nonfinite && !isHitBy)
        continue;
      for (Viewer viewer : {Viewer::first, Viewer::second, Viewer::other}) {
        if (viewer != Viewer::first &&
            (!ingredients.hasOwnCount ||
             meaning.ranks < (viewer == Viewer::second ? 2 : 3)))
          continue;
        double value = proof.algebra.evaluate(verdict, [&](BaseRef base) {
          return getValue(base, situation, draw, meaning.ranks, viewer);
        });
        if (decided && *decided != value) {
          proof.verdicts.erase(known);
          proof.report.error(op)
              << "where " << describe(situation) << ", the verdict is "
              << *decided << " or " << value
              << ": it depends on more than that, or ranks disagree";
          return;
        }
        decided = value;
      }
    }
    known->second[i] = *decided;
  }
  meaning.verdicts = known->second;
  // The sum of all squares is one number: it is not finite if one of them is
  // not.
  if (meaning.verdicts[1] == meaning.verdicts[0])
    return;
  llvm::StringSet<> domain = getDomain(verdict);
  for (auto &[name, parameter] : meaning.parameters)
    if (parameter.op.getNumElements() > 0 && !domain.contains(name.getValue()))
      proof.report.error(op)
          << "gradient of '" << name.getValue()
          << "' is not looked at: the step would be applied with one that is "
             "not finite";
}

Expr prove::getVerdict(Algebra &algebra, VerdictOp op,
                       ArrayRef<Expr> operands) {
  Expr zero = algebra.integer(0);
  Expr verdict = zero;
  auto choose = [&](Expr left, Expr right, int64_t number) {
    Expr differs = algebra.symmetric("cmpf une", left, right);
    verdict = algebra.operation("select",
                                {differs, algebra.integer(number), verdict});
  };
  if (op.getNonfinite() != Nonfinite::poison)
    choose(algebra.subtract(operands[0], operands[0]), zero,
           op.getNonfinite() == Nonfinite::skip ? 1 : 4);
  choose(operands[3], zero, 2);
  choose(algebra.multiply(algebra.integer(op.getRanks()), operands[2]),
         algebra.multiply(operands[1], operands[1]), 3);
  return verdict;
}
