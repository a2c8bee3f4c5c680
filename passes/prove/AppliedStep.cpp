//===- AppliedStep.cpp - What an applied program leaves -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/AppliedStep.h"

#include "passes/prove/Range.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// The truth of |condition|, if it follows from |outcome| and is the same for
/// all |outcomes|.
static std::optional<bool> getTruth(Expr condition, Expr outcome,
                                    ArrayRef<double> outcomes) {
  BaseRef decided = outcome->asBase();
  bool depends = false;
  visitBases(
      condition, [&](BaseRef base) { depends |= base == decided; },
      [&](BaseRef base) { return base != decided; });
  if (!depends)
    return std::nullopt;
  std::optional<bool> truth;
  for (double each : outcomes) {
    Range now =
        evaluateRange(condition, [&](BaseRef base) -> std::optional<Range> {
          if (base == decided)
            return Range::ofNumber(each);
          return std::nullopt;
        });
    if (!now.isOne() || (truth && *truth != (now.least != 0)))
      return std::nullopt;
    truth = now.least != 0;
  }
  return truth;
}

/// The outcomes of |decision|: see checkSemantics().
static SmallVector<double> getOutcomes(Decision decision) {
  switch (decision) {
  case Decision::applied:
    return {0};
  case Decision::skipped:
    return {1};
  case Decision::refused:
    return {2, 3, 4, 5};
  }
  llvm_unreachable("unknown decision");
}

bool prove::isDecided(Expr condition, Expr outcome) {
  constexpr Decision kAll[] = {Decision::applied, Decision::skipped,
                               Decision::refused};
  return llvm::any_of(kAll, [&](Decision decision) {
    return getTruth(condition, outcome, getOutcomes(decision)).has_value();
  });
}

/// The side of |base| that a selection by |outcome| takes; null if it is none.
static Expr select(BaseRef base, Expr outcome, ArrayRef<double> outcomes) {
  if (base->kind != BaseKind::operation || base->name != "select")
    return nullptr;
  auto truth = getTruth(base->operands[0], outcome, outcomes);
  return truth ? base->operands[*truth ? 1 : 2] : nullptr;
}

/// The symbol of a positive number of tokens, if |base| counts them.
static Expr replaceTokens(Algebra &algebra, BaseRef base) {
  return base->kind == BaseKind::tokens && base->own == 0
             ? algebra.symbol(kTokens)
             : nullptr;
}

Expr prove::getAppliedOutcome(Algebra &algebra, Expr outcome, bool hasTokens) {
  return algebra.substitute(outcome, [&](BaseRef base) {
    return hasTokens ? replaceTokens(algebra, base) : nullptr;
  });
}

void prove::decide(Algebra &algebra, Memory &memory, Expr outcome,
                   Decision decision, bool hasTokens) {
  bool isApplied = decision == Decision::applied;
  SmallVector<double> outcomes = getOutcomes(decision);
  // Skipping must not take arithmetic: nothing times nan is nothing.
  Expr unknown = algebra.undefined("a gradient that may not be finite");
  Substitution decide(algebra, [&](BaseRef base) -> Expr {
    if (!isApplied && base->kind == BaseKind::gradient)
      return unknown;
    Expr tokens =
        isApplied && hasTokens ? replaceTokens(algebra, base) : nullptr;
    return tokens ? tokens : select(base, outcome, outcomes);
  });
  // A kernel that runs also where the step is not applied has rounded.
  if (!isApplied)
    for (auto &[name, contents] : memory.buffers)
      for (Pieces *pieces : {&contents.own, &contents.other})
        for (Piece &piece : *pieces)
          for (Number *number : {&piece.element, &piece.pad})
            if (!number->ran ||
                getTruth(number->ran, outcome, outcomes) == false)
              number->roundings = number->skipped;
  memory.map([&](Expr a) { return decide.apply(a); });
}

/// Adds the intervals of a parameter in |contents|. It begins at |offset|.
static void readIntervals(ParameterSemantics &parameter,
                          const Contents &contents, StringRef role,
                          int64_t offset) {
  int64_t length = parameter.elements;
  if (contents.writer)
    parameter.writer = contents.writer;
  std::vector<IntervalSemantics> result;
  auto known = parameter.intervals.begin();
  const Piece *piece = llvm::partition_point(
      contents.own, [&](const Piece &piece) { return piece.end <= offset; });
  for (int64_t begin = 0; begin < length;) {
    IntervalSemantics interval;
    int64_t end = std::min(length, piece->end - offset);
    if (known != parameter.intervals.end()) {
      end = std::min(end, known->end);
      interval.roles = known->roles;
      if (known->end == end)
        ++known;
    }
    interval.begin = begin;
    interval.end = end;
    interval.roles.push_back({role.str(), piece->element});
    result.push_back(std::move(interval));
    if (piece->end - offset == end)
      ++piece;
    begin = end;
  }
  parameter.intervals = std::move(result);
}

static SmallVector<std::pair<std::string, Number>>
getResults(zrt::ProgramOp program, const Memory &memory) {
  SmallVector<std::pair<std::string, Number>> results;
  for (auto [name, slots] :
       llvm::zip_equal(program.getResultNames().getAsRange<StringAttr>(),
                       program.getResults().getAsRange<FlatSymbolRefAttr>()))
    results.push_back(
        {name.getValue().str(), memory.slots.lookup({slots.getAttr(), 0})});
  return results;
}

void prove::readApplied(Proof &proof, zrt::ProgramOp program,
                        const Buckets &buckets, Memory &memory,
                        StepSemantics &semantics) {
  for (auto op : program.getOps<zrt::StateOp>()) {
    const Contents &contents = memory.get(op.getBufferAttr());
    BucketOp bucket = buckets.lookup(op.getBucketAttr().getAttr()).op;
    if (contents.bucket != bucket.getSymNameAttr()) {
      proof.report.error(contents.writer ? contents.writer : op.getOperation())
          << op.getBufferAttr() << " holds elements of "
          << (contents.bucket ? "@" + contents.bucket.getValue().str()
                              : "nobody")
          << " after the step, expected those of @" << bucket.getSymName();
      continue;
    }
    zrt::BufferOp buffer = contents.op;
    for (auto [member, offset] :
         llvm::zip_equal(bucket.getMembers().getAsRange<FlatSymbolRefAttr>(),
                         bucket.getOffsets())) {
      ParameterSemantics &parameter = semantics.parameters[member.getAttr()];
      parameter.types[op.getRoleAttr()] =
          buffer.getValueType().getElementType();
      readIntervals(parameter, contents, op.getRole(), offset);
    }
  }
  SymbolTable symbols(program);
  for (auto op : program.getOps<zrt::ScalarStateOp>()) {
    auto slots = symbols.lookup<zrt::SlotsOp>(op.getSlotsAttr().getAttr());
    semantics.initials.push_back(
        {op.getRole().str(),
         {proof.algebra.constant(slots.getInitial()[op.getIndex()])}});
    semantics.counters.push_back(
        {op.getRole().str(),
         memory.slots[{op.getSlotsAttr().getAttr(), op.getIndex()}]});
  }
  semantics.results = getResults(program, memory);
}

void prove::readResultsIfNotApplied(Algebra &algebra, zrt::ProgramOp program,
                                    const Memory &memory, Expr outcome,
                                    StepSemantics &semantics) {
  auto read = [&](Decision decision, bool hasTokens) {
    SmallVector<double> outcomes = getOutcomes(decision);
    Substitution decide(algebra, [&](BaseRef base) {
      Expr tokens = hasTokens ? replaceTokens(algebra, base) : nullptr;
      return tokens ? tokens : select(base, outcome, outcomes);
    });
    auto results = getResults(program, memory);
    for (auto &[name, number] : results)
      number.expr = decide.apply(number.expr);
    return results;
  };
  // A step without tokens is never skipped.
  semantics.skippedResults = read(Decision::skipped, semantics.dividesByTokens);
  semantics.refusedResults = read(Decision::refused, /*hasTokens=*/false);
}

void prove::readSkipped(zrt::ProgramOp program, Memory &memory,
                        StepSemantics &semantics) {
  for (auto op : program.getOps<zrt::ScalarStateOp>())
    if (op.getChangesOnSkip())
      semantics.skipped.push_back(
          {op.getRole().str(),
           memory.slots[{op.getSlotsAttr().getAttr(), op.getIndex()}]});
}
