//===- Outcome.h - What a number of an outcome says -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZERO_OUTCOME_H
#define ZERO_DIALECT_ZERO_OUTCOME_H

#include "dialect/zero/ZeroDialect.h"

namespace zero {

/// The largest number that a step computes as its outcome. The runtime alone
/// says `refused_input`, of a step that refuses a missing gradient.
inline constexpr Outcome kLastOutcome = Outcome::refused_no_tokens;

/// The outcome of a step with a gradient that is not finite.
inline Outcome getNonfiniteOutcome(Nonfinite treatment) {
  switch (treatment) {
  case Nonfinite::skip:
    return Outcome::skipped_nonfinite;
  case Nonfinite::apply:
    return Outcome::applied;
  case Nonfinite::error:
    return Outcome::refused_nonfinite;
  }
  llvm_unreachable("a treatment");
}

/// The outcome that a step computed as a number; none if the number is nan, a
/// fraction or too large.
inline std::optional<Outcome> toOutcome(double outcome) {
  // Written so that nan is no outcome.
  if (!(outcome >= 0 && outcome <= double(kLastOutcome)) ||
      outcome != static_cast<int>(outcome))
    return std::nullopt;
  return Outcome(static_cast<int>(outcome));
}

} // namespace zero

#endif // ZERO_DIALECT_ZERO_OUTCOME_H
