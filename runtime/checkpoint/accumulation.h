//===- accumulation.h - Checkpoints within a step ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between two backward passes a checkpoint has the sums of the gradients so
// far. The proof shows that a step needs nothing else there
// (passes/prove/Accumulators.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_ACCUMULATION_H
#define ZERO_RT_CHECKPOINT_ACCUMULATION_H

#include "checkpoint/index.h"
#include "checkpoint/prescaled.h"

namespace zero_rt {

/// Refuses |call| unless a checkpoint may be saved: between steps, or between
/// two backward passes of a step that will not be refused.
zero_rt_status requireSavableState(const Step &step, const char *call);

/// Where a step goes on from a checkpoint.
struct Resumption {
  int64_t backwards = 0; // 0: at the begin of a step
  /// The number of backward passes of a whole step, divided by that of the step
  /// that was saved: all ranks together work on as many batches.
  Quotient passes;
};

/// Finds where |step| goes on from the sums of gradients in the checkpoint of
/// |index|. Errors: invalid_argument (it cannot).
zero_rt_status findResumption(const Step &step, const CheckpointIndex &index,
                              Resumption &out);

/// Brings |step|, which is between steps, to where it is after |backwards|
/// backward passes, with sums that are 0. Collective.
zero_rt_status resumeAccumulation(Step &step, int64_t backwards);

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_ACCUMULATION_H
