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

#include "llvm/ADT/StringExtras.h"

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
  void checkCounters(ArrayRef<GroupOp> groups);

private:
  void begin(GroupOp op);
  bool depends(Expr a);
  bool depends(BaseRef base);
  std::optional<bool> getTruth(Expr condition, Range total);
  Expr choose(Expr a, Range total);
  void check(Operation *culprit, const Twine &what, Number &number, Expr old);
  void checkRoundings(Operation *culprit, const Twine &what,
                      const Number &number, Type type);

  Proof &proof;
  Algebra &algebra;
  BaseRef outcome;
  StepSemantics &semantics;
  GroupOp group;
  Expr total = nullptr;
  llvm::DenseMap<Operation *, Expr> totals;
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

SkippedWith prove::getSkippedWith(GroupOp group) {
  if (!group.getSkipsAbsent())
    return nullptr;
  auto names = llvm::map_to_vector(
      group.getMembers().getAsRange<FlatSymbolRefAttr>(),
      [](FlatSymbolRefAttr member) { return member.getValue(); });
  llvm::sort(names);
  return std::make_shared<const std::string>("'" + llvm::join(names, "', '") +
                                             "'");
}

void prove::noteAbsentGroups(ModuleOp module, StepSemantics &semantics) {
  for (auto group : module.getOps<GroupOp>()) {
    SkippedWith members = getSkippedWith(group);
    if (!members)
      continue;
    for (auto member : group.getMembers().getAsRange<FlatSymbolRefAttr>())
      if (auto it = semantics.parameters.find(member.getAttr());
          it != semantics.parameters.end())
        it->second.skippedWith = members;
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
  if (number.computedAgain)
    number.computedAgain = choose(number.computedAgain, Range::ofNumber(0));
  number.expr = choose(number.expr, {1, kInfinity});
  if (absent == old && !depends(number.expr))
    return;
  InFlightDiagnostic diagnostic = proof.report.error(culprit);
  diagnostic << what << " of group @" << group.getSymName();
  if (absent != old)
    diagnostic << " is not shown to stay where no gradient of the group "
                  "arrived";
  else
    diagnostic << " depends on more than whether a gradient of the group "
                  "arrived";
  diagnostic.attachNote(group.getLoc()) << "the group has 'absent skip'";
}

/// Kernels that run where no gradient of the group arrived round elements that
/// stay.
void Checker::checkRoundings(Operation *culprit, const Twine &what,
                             const Number &number, Type type) {
  Precision kept(type);
  bool isSkipped =
      number.ran && getTruth(number.ran, Range::ofNumber(0)) == false;
  Roundings roundings = isSkipped ? number.skipped : number.roundings;
  Precision narrowest = roundings.getNarrowest();
  bool isWide = narrowest.holds(kept);
  uint64_t way = isSkipped ? number.getWayIfSkipped() : number.way;
  if (isWide && Number::isMoved(way, type))
    return;
  InFlightDiagnostic diagnostic = proof.report.error(culprit);
  diagnostic << what << " of group @" << group.getSymName();
  if (isWide)
    diagnostic << " is computed, expected a copy";
  else
    diagnostic << " may have gone through " << narrowest.describe()
               << ", expected " << kept.describe();
  diagnostic << ", where no gradient of the group arrived";
  diagnostic.attachNote(group.getLoc()) << "the group has 'absent skip'";
}

void Checker::begin(GroupOp op) {
  group = op;
  Expr &sum = totals[op];
  if (!sum)
    sum = getDeliveredTotal(algebra, op, semantics.axes);
  total = sum;
}

void Checker::check(GroupOp op) {
  begin(op);
  for (auto member : group.getMembers().getAsRange<FlatSymbolRefAttr>()) {
    auto it = semantics.parameters.find(member.getAttr());
    if (it == semantics.parameters.end())
      continue;
    ParameterSemantics &parameter = it->second;
    for (IntervalSemantics &interval : parameter.intervals)
      for (auto &[role, number] : interval.roles) {
        Operation *culprit = parameter.writer ? parameter.writer : parameter.op;
        std::string what = (role + " of '" + member.getValue() + "'").str();
        unsigned errors = proof.report.getNumErrors();
        check(culprit, what, number, algebra.state(role));
        if (proof.report.getNumErrors() > errors)
          continue;
        auto name = StringAttr::get(group.getContext(), role);
        checkRoundings(culprit, what, number, parameter.types.lookup(name));
      }
  }
}

/// A program does not say which counters are those of a group. So the group is
/// the one whose gradients a counter asks for, and the written step says which
/// one that must be.
void Checker::checkCounters(ArrayRef<GroupOp> groups) {
  llvm::DenseMap<Expr, GroupOp> groupOf;
  for (GroupOp op : groups) {
    begin(op);
    groupOf[total] = op;
  }
  for (auto &[role, number] : semantics.counters) {
    BaseRef base = number.expr->asBase();
    if (!depends(number.expr))
      continue;
    GroupOp found;
    if (base && base->kind == BaseKind::operation && base->name == "select")
      visitBases(
          base->operands[0],
          [&](BaseRef inner) {
            for (Expr operand : inner->operands)
              if (GroupOp op = groupOf.lookup(operand); op && !found)
                found = op;
          },
          [&](BaseRef inner) { return inner != outcome; });
    if (!found) {
      proof.report.error(semantics.step)
          << "counter '" << role
          << "' depends on gradients that arrived, and not on those of a group "
             "with 'absent skip'";
      continue;
    }
    begin(found);
    semantics.countersSkippedWith[role] = getSkippedWith(found);
    check(semantics.step, "counter '" + role + "'", number,
          algebra.base({BaseKind::old, role}));
    if (number.isComputedAgain()) {
      InFlightDiagnostic diagnostic = proof.report.error(semantics.step);
      diagnostic << "counter '" << role << "' of group @" << found.getSymName()
                 << " is computed, expected a copy, "
                 << "where no gradient of the group arrived";
      diagnostic.attachNote(found.getLoc()) << "the group has 'absent skip'";
    }
  }
}

void prove::checkAbsentGroups(Proof &proof, ModuleOp module, Expr outcome,
                              StepSemantics &semantics) {
  Checker checker(proof, outcome, semantics);
  SmallVector<GroupOp> groups;
  for (auto group : module.getOps<GroupOp>())
    if (group.getSkipsAbsent())
      groups.push_back(group);
  for (GroupOp group : groups)
    checker.check(group);
  checker.checkCounters(groups);
}
