//===- Counters.h - Loss scales and schedules across steps ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_COUNTERS_H
#define ZERO_DIALECT_INTERPRET_COUNTERS_H

#include "dialect/interpret/ScalarBody.h"
#include "dialect/zero/ZeroDialect.h"

namespace zero {

/// The counters of a zero.loss_scale or zero.schedule on each rank.
class Counters {
public:
  static mlir::FailureOr<Counters> create(CounterRule op, int64_t ranks);

  /// The value of the loss scale or schedule on |rank| in this step.
  Number read(const Calculator &calculator, int64_t rank);
  /// The counter of |rank| with the name |role|, or nothing.
  std::optional<Number> find(llvm::StringRef role, int64_t rank);
  /// Advances the counters of |rank| after a step with |outcome|.
  void advance(const Calculator &calculator, int64_t rank, Outcome outcome);

private:
  Counters(CounterRule op, ScalarBody rule) : op(op), rule(std::move(rule)) {}

  CounterRule op;
  ScalarBody rule;
  std::optional<ScalarBody> value; // of a schedule
  std::vector<std::vector<Number>> byRank;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_COUNTERS_H
