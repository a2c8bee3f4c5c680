//===- AbsentGroups.cpp - Groups that a step may leave as they are --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// New values of such a group are selections by the number of its gradients that
// arrived. The two sides are looked at apart: with the number 0 the values are
// the old ones, and with another number they are those of an update. Nothing
// else depends on such a number.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/AbsentGroups.h"

#include "passes/prove/Bounds.h"
#include "passes/prove/Range.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

namespace {
/// What an applied step leaves of one group.
class Checker {
public:
  Checker(Proof &proof, Expr outcome, StepSemantics &semantics)
      : proof(proof), algebra(proof.algebra), outcome(outcome->asBase()),
        semantics(semantics) {}

  void check(GroupOp group);

private:
  bool depends(Expr a);
  bool depends(BaseRef base);
  std::optional<bool> getTruth(Expr condition, Range total);
  Expr choose(Expr a, Range total);
  void check(Operation *culprit, const Twine &what, Number &number, Expr old);

  Proof &proof;
  Algebra &algebra;
  BaseRef outcome;
  StepSemantics &semantics;
  GroupOp group;
  Expr total = nullptr;
  /// Whether a base depends on a number of gradients that arrived.
  llvm::DenseMap<BaseRef, bool> known;
};
} // namespace

Expr prove::getDeliveredTotal(Algebra &algebra, GroupOp group,
                              const MeshAxes &axes) {
  SmallVector<Expr> counts;
  for (auto member : group.getMembers().getAsRange<FlatSymbolRefAttr>())
    counts.push_back(
        sumOverRanks(algebra, getDelivered(algebra, member.getValue(), axes),
                     axes, axes.getAll(), /*stages=*/0));
  return algebra.sum(counts);
}

void prove::noteAbsentGroups(ModuleOp module, StepSemantics &semantics) {
  for (auto group : module.getOps<GroupOp>()) {
    if (!group.getSkipsAbsent())
      continue;
    for (auto member : group.getMembers().getAsRange<FlatSymbolRefAttr>())
      if (auto it = semantics.parameters.find(member.getAttr());
          it != semantics.parameters.end())
        for (auto other : group.getMembers().getAsRange<FlatSymbolRefAttr>())
          it->second.skippedWith.insert(other.getValue().str());
  }
}

bool Checker::depends(BaseRef base) {
  if (auto it = known.find(base); it != known.end())
    return it->second;
  bool result = base->kind == BaseKind::delivered ||
                llvm::any_of(base->operands,
                             [&](Expr operand) { return depends(operand); });
  return known[base] = result;
}

bool Checker::depends(Expr a) {
  return llvm::any_of(a->getTerms(), [&](const Term &term) {
    return llvm::any_of(term.monomial,
                        [&](auto factor) { return depends(factor.first); });
  });
}

/// The truth of |condition| in an applied step in which |total| gradients of
/// the group arrived, if that decides it.
std::optional<bool> Checker::getTruth(Expr condition, Range total) {
  std::function<std::optional<Range>(BaseRef)> getRange =
      [&](BaseRef base) -> std::optional<Range> {
    if (base == outcome)
      return Range::ofNumber(0);
    StringRef name = base->name;
    if (base->kind != BaseKind::operation || !name.starts_with("cmpf ") ||
        !llvm::is_contained(base->operands, this->total))
      return std::nullopt;
    auto rangeOf = [&](Expr a) {
      return a == this->total ? total : evaluateRange(a, getRange);
    };
    return compareRanges(name, rangeOf(base->operands[0]),
                         rangeOf(base->operands[1]));
  };
  Range truth = evaluateRange(condition, getRange);
  if (!truth.isOne())
    return std::nullopt;
  return truth.least != 0;
}

/// The sides of selections that a step takes in which |total| gradients of the
/// group arrived.
Expr Checker::choose(Expr a, Range total) {
  while (true) {
    BaseRef base = a->asBase();
    if (!base || base->kind != BaseKind::operation || base->name != "select" ||
        !depends(base->operands[0]))
      return a;
    std::optional<bool> truth = getTruth(base->operands[0], total);
    if (!truth)
      return a;
    a = base->operands[*truth ? 1 : 2];
  }
}

void Checker::check(Operation *culprit, const Twine &what, Number &number,
                    Expr old) {
  Expr absent = choose(number.expr, Range::ofNumber(0));
  number.expr = choose(number.expr, {1, kInfinity});
  if (absent == old && !depends(number.expr))
    return;
  InFlightDiagnostic diagnostic = proof.report.error(culprit);
  diagnostic << what << " of group @" << group.getSymName();
  if (absent != old)
    diagnostic << " changes where no gradient of the group arrived";
  else
    diagnostic << " depends on whether gradients of another group arrived";
  diagnostic.attachNote(group.getLoc()) << "the group has 'absent skip'";
}

void Checker::check(GroupOp op) {
  group = op;
  total = getDeliveredTotal(algebra, group, semantics.axes);
  for (auto member : group.getMembers().getAsRange<FlatSymbolRefAttr>()) {
    auto it = semantics.parameters.find(member.getAttr());
    if (it == semantics.parameters.end())
      continue;
    ParameterSemantics &parameter = it->second;
    for (IntervalSemantics &interval : parameter.intervals)
      for (auto &[role, number] : interval.roles)
        check(parameter.writer ? parameter.writer : parameter.op,
              role + " of '" + member.getValue() + "'", number,
              algebra.state(role));
  }
  std::string prefix = (group.getSymName() + ".").str();
  for (auto &[role, number] : semantics.counters)
    if (StringRef(role).starts_with(prefix))
      check(semantics.step, "counter '" + role + "'", number,
            algebra.base({BaseKind::old, role}));
}

void prove::checkAbsentGroups(Proof &proof, ModuleOp module, Expr outcome,
                              StepSemantics &semantics) {
  Checker checker(proof, outcome, semantics);
  for (auto group : module.getOps<GroupOp>())
    if (group.getSkipsAbsent())
      checker.check(group);
}
