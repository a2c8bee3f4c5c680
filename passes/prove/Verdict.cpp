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
  int64_t backwards; // on every rank but the first
  int64_t more;      // of the first rank, where they are unequal
  int64_t missing;   // where gradients are
  double sum;        // over elements
  double nonfinite;  // the same, where it is not finite
  double scalar;     // anything else
};
} // namespace

/// What a verdict must not depend on: how many backwards, of what size.
static constexpr Draw kDraws[] = {
    {1, 1, 1, 1.0, NAN, 1.0},         {2, 1, 1, 0.25, INFINITY, 0.5},
    {3, -1, 2, 1e30, NAN, 0.001},     {4, 3, 7, 0.0, INFINITY, 3.0},
    {7, -6, 1, 1e-40, INFINITY, 0.9}, {1, 15, 1000, 65536.0, NAN, 1e-8},
};

/// What the bases of a verdict are in |situation|.
static std::optional<double> getValue(BaseRef base, Situation situation,
                                      const Draw &draw, int64_t ranks,
                                      bool onFirst) {
  auto first = double(draw.backwards + (situation.unequal ? draw.more : 0));
  switch (base->kind) {
  case BaseKind::sumOver:
    return situation.nonfinite ? draw.nonfinite : draw.sum;
  case BaseKind::rankSum: {
    // The sum over the ranks of a power of what each counts: see sumOverRanks.
    auto [counted, power] = base->operands[0]->getTerms()[0].monomial[0];
    auto exponent = double(power);
    if (counted->kind == BaseKind::missing)
      return situation.missing ? std::pow(double(draw.missing), exponent) : 0;
    return double(ranks - 1) * std::pow(double(draw.backwards), exponent) +
           std::pow(first, exponent);
  }
  case BaseKind::missing:
    return situation.missing ? draw.missing : 0;
  case BaseKind::symbol:
    if (base->name != kAccumulation)
      return draw.scalar;
    return onFirst ? first : double(draw.backwards);
  case BaseKind::input:
  case BaseKind::old:
    return draw.scalar;
  default:
    return std::nullopt;
  }
}

/// Parameters whose gradients are squared and summed somewhere in |verdict|.
static llvm::StringSet<> getDomain(Expr verdict) {
  llvm::StringSet<> domain;
  visitBases(verdict, [&](BaseRef base) {
    if (base->kind != BaseKind::sumOver)
      return;
    bool whole = false;
    visitBases(base->operands[0], [&](BaseRef inner) {
      whole |= inner->kind == BaseKind::gradient && inner->summed &&
               inner->epoch == Epoch::all;
    });
    if (whole)
      domain.insert(base->name);
  });
  return domain;
}

static SmallVector<std::pair<Draw, bool>> getTries() {
  SmallVector<std::pair<Draw, bool>> tries;
  for (const Draw &draw : kDraws)
    for (bool onFirst : {true, false})
      tries.push_back({draw, onFirst});
  return tries;
}

void prove::readVerdict(Proof &proof, Operation *op, Expr verdict,
                        Meaning &meaning) {
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
    for (const std::pair<Draw, bool> &attempt : getTries()) {
      const Draw &draw = attempt.first;
      bool onFirst = attempt.second;
      double value = proof.algebra.evaluate(verdict, [&](BaseRef base) {
        return getValue(base, situation, draw, meaning.ranks, onFirst);
      });
      if (decided && *decided != value) {
        proof.verdicts.erase(known);
        proof.report.error(op)
            << "where " << describe(situation) << ", the verdict is "
            << *decided << " or " << value
            << ", which depends on more than that: with " << draw.backwards
            << " backwards it is " << value << " on "
            << (onFirst ? "rank 0" : "the other ranks");
        return;
      }
      decided = value;
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
