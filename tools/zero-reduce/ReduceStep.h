//===- ReduceStep.h - Makes a step smaller while it is bad ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_REDUCE_REDUCESTEP_H
#define ZERO_TOOLS_ZERO_REDUCE_REDUCESTEP_H

namespace zero {

/// Registers the pass --zero-reduce-step.
void registerReduceStepPass();

} // namespace zero

#endif // ZERO_TOOLS_ZERO_REDUCE_REDUCESTEP_H
