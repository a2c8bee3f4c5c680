//===- Counters.cpp - Loss scales and schedules across steps --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Counters.h"

#include "dialect/interpret/Optimizer.h"

#include <cmath>

using namespace mlir;
using namespace zero;

FailureOr<Counters> Counters::create(CounterRule op, int64_t ranks) {
  FailureOr<ScalarBody> rule = ScalarBody::create(op.getRule());
  if (failed(rule))
    return failure();
  Counters counters(op, std::move(*rule));
  if (auto schedule = dyn_cast<ScheduleOp>(op.getOperation())) {
    FailureOr<ScalarBody> value =
        ScalarBody::create(schedule.getValue().front());
    if (failed(value))
      return failure();
    counters.value = std::move(*value);
  }
  std::vector<Number> first;
  for (double initial : op.getCounterInitial())
    first.push_back({initial, 0});
  counters.byRank.assign(ranks, first);
  return counters;
}

Number Counters::read(const Calculator &calculator, int64_t rank) {
  if (!value)
    return byRank[rank][0];
  Number number;
  value->run(calculator, byRank[rank], number);
  return number;
}

std::optional<Number> Counters::find(StringRef role, int64_t rank) {
  if (!role.consume_front(SymbolTable::getSymbolName(op).getValue()) ||
      !role.consume_front("."))
    return std::nullopt;
  auto i = findName(op.getCounterNames(), role);
  return i ? std::optional(byRank[rank][*i]) : std::nullopt;
}

void Counters::advance(const Calculator &calculator, int64_t rank,
                       Outcome outcome) {
  if (outcome != Outcome::applied && outcome != Outcome::skipped_nonfinite)
    return;
  std::vector<Number> &counters = byRank[rank];
  std::vector<Number> arguments{{double(outcome), 0}};
  llvm::append_range(arguments, counters);
  std::vector<Number> next(counters.size());
  rule.run(calculator, arguments, next);
  // A loss scale that gradients cannot be divided by is refused: the old one
  // stays.
  if (isa<LossScaleOp>(op) &&
      (!std::isnormal(next[0].value) || next[0].value < 0))
    next[0] = counters[0];
  counters = std::move(next);
}
