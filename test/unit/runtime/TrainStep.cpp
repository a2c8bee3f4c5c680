//===- TrainStep.cpp - A small step with everything in it -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TrainStep.h"

#include "Ranks.h"
#include "core/numeric.h"
#include "core/status.h"

#include <cmath>

using namespace zero_rt;
using namespace zero_rt::test;

/// Leaves a handler at the first call that fails, as compiled handlers do.
#define TRY_CALL(EXPRESSION)                                                   \
  do {                                                                         \
    if (zero_rt_status status = callsOf(step).EXPRESSION)                      \
      return status;                                                           \
  } while (false)

//===----------------------------------------------------------------------===//
// Kernels and scalar programs
//===----------------------------------------------------------------------===//

static void storeGradient(void *const *operands, const double *, int64_t begin,
                          int64_t end, double *) {
  auto *from = static_cast<const float *>(operands[0]);
  std::copy(from + begin, from + end,
            static_cast<float *>(operands[1]) + begin);
}

static void addGradient(void *const *operands, const double *, int64_t begin,
                        int64_t end, double *) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<float *>(operands[1])[i] +=
        static_cast<const float *>(operands[0])[i];
}

static void squares(void *const *operands, const double *, int64_t begin,
                    int64_t end, double *partials) {
  auto *gradient = static_cast<const float *>(operands[0]);
  for (int64_t i = begin; i < end; ++i)
    partials[i / 4096] += double(gradient[i]) * gradient[i];
}

/// Operands: shard, master, parameter. Scalars: rate, skip.
static void update(void *const *operands, const double *scalars, int64_t begin,
                   int64_t end, double *) {
  if (scalars[1] != 0)
    return;
  auto *gradient = static_cast<const float *>(operands[0]);
  auto *master = static_cast<float *>(operands[1]);
  auto *parameter = static_cast<uint16_t *>(operands[2]);
  for (int64_t i = begin; i < end; ++i) {
    master[i] -= float(scalars[0]) * gradient[i];
    parameter[i] = bf16FromFloat(master[i]);
  }
}

static void beforeReduction(double *slots) {
  slots[BackwardsSquared] = slots[Backwards] * slots[Backwards];
}

static void afterReduction(double *slots) {
  double mean = slots[Backwards] / slots[NumRanks];
  int verdict = ZERO_RT_APPLIED;
  if (slots[Missing] != 0)
    verdict = ZERO_RT_REFUSED_MISSING_GRADIENT;
  else if (slots[BackwardsSquared] != slots[NumRanks] * mean * mean)
    verdict = ZERO_RT_REFUSED_UNEQUAL_BACKWARDS;
  else if (!std::isfinite(slots[SumOfSquares]))
    verdict = ZERO_RT_SKIPPED_NONFINITE;
  slots[Verdict] = verdict;
  slots[Norm] = std::sqrt(slots[SumOfSquares]);
  slots[StepsBefore] = slots[Steps];
  slots[Steps] += verdict == ZERO_RT_APPLIED;
  slots[FirstRate] = slots[LearningRate];
  slots[SecondRate] = 2 * slots[LearningRate];
  slots[FirstSkip] = slots[SecondSkip] = verdict != ZERO_RT_APPLIED;
}

static void restore(double *slots) { slots[Steps] = slots[StepsBefore]; }

//===----------------------------------------------------------------------===//
// Handlers
//===----------------------------------------------------------------------===//

static zero_rt_status allocateGradient(zero_rt_step *step,
                                       const zero_rt_event *) {
  return callsOf(step).allocate(step, GradientBuffer);
}

static zero_rt_status releaseGradient(zero_rt_step *step,
                                      const zero_rt_event *) {
  return callsOf(step).release(step, GradientBuffer);
}

static zero_rt_status store(zero_rt_step *step, const zero_rt_event *event) {
  return callsOf(step).pack(step, event, 0);
}

static zero_rt_status add(zero_rt_step *step, const zero_rt_event *event) {
  return callsOf(step).pack(step, event, 1);
}

static zero_rt_status fill(zero_rt_step *step, const zero_rt_event *) {
  return callsOf(step).fill_missing(step, 0);
}

static zero_rt_status keep(zero_rt_step *step, const zero_rt_event *) {
  return callsOf(step).set_role(step, GradientBuffer, ZERO_RT_ROLE_ACCUMULATOR);
}

static zero_rt_status measure(zero_rt_step *step, const zero_rt_event *) {
  const int32_t shard[] = {ShardBuffer};
  TRY_CALL(reduce_scatter(step, GradientBuffer, ShardBuffer, 0,
                          ZERO_RT_STREAM_COMPUTE));
  TRY_CALL(count_arrivals(step, Backwards, Missing));
  TRY_CALL(launch(step, 2, shard, 1, 0, trainElements, 0, SumOfSquares,
                  ZERO_RT_STREAM_COMPUTE));
  TRY_CALL(run_scalars(step, 0));
  TRY_CALL(
      all_reduce_scalars(step, SumOfSquares, 4, 0, ZERO_RT_STREAM_COMPUTE));
  return callsOf(step).run_scalars(step, 1);
}

static zero_rt_status undo(zero_rt_step *step, const zero_rt_event *) {
  return callsOf(step).run_scalars(step, 2);
}

static zero_rt_status updateAndGather(zero_rt_step *step,
                                      const zero_rt_event *) {
  const int32_t updated[] = {ShardBuffer, MasterBuffer, ParameterBuffer};
  TRY_CALL(launch(step, 3, updated, 3, 1, trainElements, 0, -1,
                  ZERO_RT_STREAM_COMPUTE));
  return callsOf(step).all_gather(step, ParameterBuffer, 0,
                                  ZERO_RT_STREAM_COMPUTE);
}

static zero_rt_status commit(zero_rt_step *step, const zero_rt_event *) {
  return callsOf(step).commit(step, Verdict);
}

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

static zero_rt_status doNothing(zero_rt_step *, const zero_rt_event *) {
  return ZERO_RT_OK;
}

static void addTrainProtocol(LibraryBuilder &library, bool isResumable) {
  zero_rt_handler_fn allocate = isResumable ? doNothing : allocateGradient;
  zero_rt_handler_fn release = isResumable ? doNothing : releaseGradient;
  for (const char *name : {"idle", "first", "between", "later", "measured"})
    library.addProtocolState(name);
  library.addTransition(Idle, ZERO_RT_EVENT_BEGIN, InFirst, {allocate});
  library.addTransition(InFirst, ZERO_RT_EVENT_ARRIVE, InFirst, {store});
  library.addTransition(InFirst, ZERO_RT_EVENT_ACCUMULATE, Between,
                        {fill, keep});
  library.addTransition(InFirst, ZERO_RT_EVENT_MEASURE, Measured,
                        {fill, measure, commit});
  library.addTransition(InFirst, ZERO_RT_EVENT_APPLY, Idle,
                        {fill, measure, updateAndGather, commit, release});
  library.addTransition(InFirst, ZERO_RT_EVENT_DISCARD, Idle, {release});
  library.addTransition(Between, ZERO_RT_EVENT_BEGIN, InLater);
  library.addTransition(Between, ZERO_RT_EVENT_MEASURE, Measured,
                        {measure, commit});
  library.addTransition(Between, ZERO_RT_EVENT_APPLY, Idle,
                        {measure, updateAndGather, commit, release});
  library.addTransition(Between, ZERO_RT_EVENT_DISCARD, Idle, {release});
  library.addTransition(InLater, ZERO_RT_EVENT_ARRIVE, InLater, {add});
  library.addTransition(InLater, ZERO_RT_EVENT_ACCUMULATE, Between);
  library.addTransition(InLater, ZERO_RT_EVENT_MEASURE, Measured,
                        {measure, commit});
  library.addTransition(InLater, ZERO_RT_EVENT_APPLY, Idle,
                        {measure, updateAndGather, commit, release});
  library.addTransition(InLater, ZERO_RT_EVENT_DISCARD, Idle, {release});
  library.addTransition(Measured, ZERO_RT_EVENT_APPLY, Idle,
                        {updateAndGather, release});
  library.addTransition(Measured, ZERO_RT_EVENT_DISCARD, Idle, {undo, release});
}

LibraryBuilder zero_rt::test::makeTrainStep(int64_t ranks, bool isResumable) {
  LibraryBuilder library(ranks);
  library.addBuffer(
      {"params", ZERO_RT_BF16, trainElements, false, ZERO_RT_ROLE_PARAMETER});
  library.addBuffer(
      {"masters", ZERO_RT_F32, trainElements, true, ZERO_RT_ROLE_STATE});
  library.addBuffer({"b0", ZERO_RT_F32, trainElements, false,
                     ZERO_RT_ROLE_GRADIENT, ZERO_RT_SPACE_DEVICE,
                     /*onDemand=*/!isResumable});
  library.addBuffer({"b0.shard", ZERO_RT_F32, trainElements, true});

  library.buckets.push_back({library.addText("b0"), trainElements,
                             GradientBuffer, ParameterBuffer, MasterBuffer, 0,
                             1, /*staging=*/-1, /*rows=*/-1, /*replicated=*/-1,
                             0, 0, 0,
                             /*num_readable=*/-1});
  const char *names[] = {"fc1.weight", "fc1.bias", "tied", "extra"};
  for (int32_t p = 0; p < NumTrainParameters; ++p)
    library.parameters.push_back(
        {library.addText(names[p]), ZERO_RT_BF16, ZERO_RT_F32, trainSizes[p], 0,
         trainOffsets[p], trainExtents[p], p == Extra, p == Tied ? 2 : 1});

  for (const char *name :
       {"lr", "squares", "backwards", "missing", "backwards2"})
    library.addSlot(name);
  library.addSlot("ranks", double(ranks));
  for (const char *name : {"verdict", "norm", "steps"})
    library.addSlot(name);
  library.addSlot("loss_scale", 1024);
  library.lossScale = LossScale;
  for (const char *name : {"rate0", "skip0", "rate1", "skip1", "steps0"})
    library.addSlot(name);
  library.inputs = {{LearningRate, -1, /*tokens=*/0, ZERO_RT_INPUT_FINITE,
                     library.addText("lr")}};
  library.results = {{library.addText("norm"), Norm}};

  for (zero_rt_kernel_fn kernel : {storeGradient, addGradient, squares, update})
    library.addKernel(kernel);
  library.scalarPrograms = {beforeReduction, afterReduction, restore};
  library.addTable({{0, trainElements, 0}});
  library.addTable({{0, 14, FirstRate}, {14, trainElements, SecondRate}});
  library.addState("parameter", 0, ParameterBuffer);
  library.addState("master", 0, MasterBuffer);
  library.addState("steps", -1, Steps);
  addTrainProtocol(library, isResumable);
  if (isResumable)
    library.accumulators = {{GradientBuffer, /*partial=*/1, /*arrives=*/1,
                             /*numerator=*/1, /*denominator=*/1,
                             /*passes_power=*/0, /*tokens_power=*/0}};
  return library;
}

std::vector<uint16_t> zero_rt::test::trainParameter(int32_t parameter,
                                                    float first) {
  std::vector<uint16_t> value(static_cast<size_t>(trainSizes[parameter]));
  for (size_t i = 0; i < value.size(); ++i)
    value[i] = bf16FromFloat(first + float(i));
  return value;
}

void zero_rt::test::bindParameter(zero_rt_step *step, int32_t parameter,
                                  float first) {
  std::vector<uint16_t> value = trainParameter(parameter, first);
  zero_rt_tensor tensor = tensorOf(ZERO_RT_BF16, value);
  expectOk(callsOf(step).bind_parameter(step, parameter, &tensor));
}

void zero_rt::test::bindParameters(zero_rt_step *step) {
  for (int32_t p = 0; p < NumTrainParameters; ++p)
    bindParameter(step, p, float(p));
}

std::vector<float> zero_rt::test::trainGradient(int32_t parameter,
                                                float value) {
  std::vector<float> gradient(static_cast<size_t>(trainSizes[parameter]));
  for (size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = value * float(i + 1);
  return gradient;
}

zero_rt_status zero_rt::test::passGradient(zero_rt_step *step,
                                           int32_t parameter, float value) {
  std::vector<float> gradient = trainGradient(parameter, value);
  zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, gradient);
  return callsOf(step).gradient(step, parameter, &tensor, nullptr, nullptr);
}

void zero_rt::test::passAll(zero_rt_step *step, float value) {
  for (int32_t p = 0; p < NumTrainParameters; ++p)
    expectOk(passPieces(step, p, value));
}

zero_rt_status zero_rt::test::passPieces(zero_rt_step *step, int32_t parameter,
                                         float value) {
  ZERO_RT_TRY(passGradient(step, parameter, value));
  return parameter == Tied ? passGradient(step, parameter, 0) : ZERO_RT_OK;
}

std::vector<uint16_t> zero_rt::test::parameterBits(zero_rt_step *step) {
  std::vector<uint16_t> bits;
  for (int32_t p = 0; p < NumTrainParameters; ++p) {
    auto view = sized<zero_rt_tensor>();
    expectOk(callsOf(step).parameter(step, p, &view));
    auto *data = static_cast<const uint16_t *>(view.data);
    bits.insert(bits.end(), data, data + view.elements);
  }
  return bits;
}

zero_rt_status zero_rt::test::measureStep(zero_rt_step *step, double rate) {
  return callsOf(step).measure(step, &rate, 1, nullptr);
}

zero_rt_status zero_rt::test::applyStep(zero_rt_step *step, double rate) {
  return callsOf(step).apply(step, &rate, 1, nullptr);
}
