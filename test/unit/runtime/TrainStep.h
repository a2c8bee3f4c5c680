//===- TrainStep.h - A small step with everything in it ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One bucket of four parameters, bf16 with f32 masters, reduced by a
// reduce-scatter and updated by SGD, with a sum of squares and all verdicts.
// The gradient buffer is allocated when a backward pass begins and is an
// accumulator from the second one on.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_RUNTIME_TRAINSTEP_H
#define ZERO_TEST_UNIT_RUNTIME_TRAINSTEP_H

#include "LibraryBuilder.h"

namespace zero_rt::test {

constexpr int64_t trainElements = 24; // pads included; for 1 to 4 ranks

enum TrainParameter { Weight, Bias, Tied, Extra, NumTrainParameters };

// Where each parameter lies: 10 + 1 pad, 3, 4 (used twice), 5 + 1 pad
// (optional).
constexpr int64_t trainSizes[] = {10, 3, 4, 5};
constexpr int64_t trainOffsets[] = {0, 11, 14, 18};
constexpr int64_t trainExtents[] = {11, 3, 4, 6};

enum TrainBuffer { ParameterBuffer, MasterBuffer, GradientBuffer, ShardBuffer };

enum TrainSlot {
  LearningRate, // the input
  SumOfSquares, // these four travel together
  Backwards,
  Missing,
  BackwardsSquared,
  NumRanks,
  Verdict,
  Norm, // the result
  Steps,
  LossScale,
  FirstRate, // scalars of the two segments: rate, skip
  FirstSkip,
  SecondRate,
  SecondSkip,
  StepsBefore
};

enum TrainState { Idle, InFirst, Between, InLater, Measured, NumTrainStates };

/// |isResumable|: a checkpoint may be saved between two backward passes, and
/// the gradient buffer lives as long as the step.
LibraryBuilder makeTrainStep(int64_t ranks, bool isResumable = false);

/// |first|, |first| + 1, ... in bf16.
std::vector<uint16_t> trainParameter(int32_t parameter, float first);

/// Binds such values.
void bindParameter(zero_rt_step *step, int32_t parameter, float first);

/// Binds such values to all parameters.
void bindParameters(zero_rt_step *step);

/// A gradient whose every element is |value| times its index from 1.
std::vector<float> trainGradient(int32_t parameter, float value);

/// Passes such a gradient.
zero_rt_status passGradient(zero_rt_step *step, int32_t parameter,
                            float value = 1);

/// Passes it whole: what has two uses comes as itself and zeros.
zero_rt_status passPieces(zero_rt_step *step, int32_t parameter,
                          float value = 1);

/// Passes the gradients of all parameters.
void passAll(zero_rt_step *step, float value = 1);

/// The bits of all parameters, pads left out.
std::vector<uint16_t> parameterBits(zero_rt_step *step);

zero_rt_status applyStep(zero_rt_step *step, double rate = 1);
zero_rt_status measureStep(zero_rt_step *step, double rate = 1);

} // namespace zero_rt::test

#endif // ZERO_TEST_UNIT_RUNTIME_TRAINSTEP_H
