//===- DeliveredTest.cpp - How often a gradient arrived -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"

#include <algorithm>
#include <cmath>

using namespace zero_rt::test;

namespace {

using Counts = std::vector<double>;

/// The scalar slots of the counts, one for each parameter.
constexpr int32_t firstCount = StepsBefore + 1;

zero_rt_status countAll(zero_rt_step *step, const zero_rt_event *) {
  for (int32_t p = 0; p < NumTrainParameters; ++p)
    if (zero_rt_status status =
            callsOf(step).count_delivered(step, p, firstCount + p))
      return status;
  return ZERO_RT_OK;
}

/// A step that counts all parameters when backward passes end.
LibraryBuilder makeCountingStep(int64_t ranks) {
  LibraryBuilder library = makeTrainStep(ranks);
  for (const char *name : {"weight", "bias", "tied", "extra"})
    library.addSlot(name, -1);
  auto protocol = std::move(library.transitions);
  auto handlers = std::move(library.transitionHandlers);
  library.transitions.clear();
  library.transitionHandlers.clear();
  for (const zero_rt_transition_row &row : protocol) {
    std::vector<zero_rt_handler_fn> run;
    for (int64_t i = row.first; i < row.first + row.count; ++i)
      run.push_back(library.handlers[size_t(handlers[size_t(i)])]);
    if (row.event == ZERO_RT_EVENT_APPLY || row.event == ZERO_RT_EVENT_MEASURE)
      run.insert(run.begin(), countAll);
    library.addTransition(row.state, row.event, row.next, run);
  }
  return library;
}

Counts countsOf(zero_rt_step *step) {
  const double *counts = slotsOf(step) + firstCount;
  return Counts(counts, counts + NumTrainParameters);
}

void begin(zero_rt_step *step) {
  expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
}

int32_t outcomeOf(zero_rt_step *step) {
  auto results = sized<zero_rt_results>();
  (void)callsOf(step).results(step, &results);
  return results.verdict;
}

void runCounting(int32_t ranks,
                 const std::function<void(int32_t, zero_rt_step *)> &body) {
  LibraryBuilder library = makeCountingStep(ranks);
  runSteps(library.get(), body);
}

} // namespace

TEST(Delivered, CountsBackwardPassesAndNoPieces) {
  runCounting(1, [](int32_t, zero_rt_step *step) {
    begin(step);
    passAll(step); // `tied` in two pieces
    expectOk(callsOf(step).accumulate(step));
    begin(step);
    for (int32_t p : {Weight, Bias, Tied})
      expectOk(passPieces(step, p));
    expectOk(applyStep(step));
    EXPECT_EQ(outcomeOf(step), ZERO_RT_APPLIED);
    EXPECT_EQ(countsOf(step), (Counts{2, 2, 2, 1}));
    // The next step begins with 0.
    begin(step);
    for (int32_t p : {Weight, Bias, Tied})
      expectOk(passPieces(step, p));
    expectOk(applyStep(step));
    EXPECT_EQ(countsOf(step), (Counts{1, 1, 1, 0}));
  });
}

TEST(Delivered, CountsEachWayToDeliver) {
  runCounting(1, [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    std::vector<float> weight = trainGradient(Weight, 1);
    std::vector<float> tied = trainGradient(Tied, 1);
    std::vector<float> bias = trainGradient(Bias, 1);
    zero_rt_tensor tensors[] = {tensorOf(ZERO_RT_F32, weight),
                                tensorOf(ZERO_RT_F32, tied),
                                tensorOf(ZERO_RT_F32, tied)};
    const int32_t parameters[] = {Weight, Tied, Tied};
    begin(step);
    expectOk(calls.gradients(step, parameters, tensors, 3, nullptr, nullptr));
    auto view = sized<zero_rt_tensor>();
    double beta = 1;
    expectOk(calls.gradient_slot(step, Bias, nullptr, &view, &beta));
    // A view counts when it is ready.
    expectOk(measureStep(step));
    EXPECT_EQ(countsOf(step), (Counts{1, 0, 1, 0}));
    EXPECT_EQ(outcomeOf(step), ZERO_RT_REFUSED_MISSING_GRADIENT);
    expectOk(calls.discard(step));

    begin(step);
    expectOk(calls.gradients(step, parameters, tensors, 3, nullptr, nullptr));
    expectOk(calls.gradient_slot(step, Bias, nullptr, &view, &beta));
    std::copy(bias.begin(), bias.end(), static_cast<float *>(view.data));
    expectOk(calls.gradient_ready(step, Bias, nullptr));
    expectOk(measureStep(step));
    EXPECT_EQ(countsOf(step), (Counts{1, 1, 1, 0}));
    // Apply after measure ends the step, too.
    expectOk(calls.apply(step, nullptr, 0, nullptr));
    begin(step);
    passAll(step);
    expectOk(applyStep(step));
    EXPECT_EQ(countsOf(step), (Counts{1, 1, 1, 1}));
  });
}

// Gradients of the second backward pass wait until the first one has ended.
TEST(Delivered, CountsConcurrentBackwardPasses) {
  runCounting(1, [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    auto pass = [&](int64_t backward, int32_t parameter) {
      std::vector<float> gradient = trainGradient(parameter, 1);
      zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, gradient);
      expectOk(calls.gradient_of(step, backward, parameter, &tensor, nullptr,
                                 nullptr));
    };
    for (int piece = 0; piece < 2; ++piece)
      for (int64_t backward : {1, 0, 2})
        pass(backward, Tied);
    for (int64_t backward : {2, 1, 0})
      for (int32_t p : {Weight, Bias})
        pass(backward, p);
    pass(1, Extra);
    for (int64_t backward : {1, 0, 2})
      expectOk(calls.end_backward(step, backward));
    expectOk(applyStep(step));
    EXPECT_EQ(outcomeOf(step), ZERO_RT_APPLIED);
    EXPECT_EQ(countsOf(step), (Counts{3, 3, 3, 1}));
  });
}

TEST(Delivered, BeginsAnewAfterADiscardedOrRefusedStep) {
  runCounting(1, [](int32_t, zero_rt_step *step) {
    begin(step);
    passAll(step);
    expectOk(callsOf(step).accumulate(step));
    begin(step);
    passAll(step);
    expectOk(callsOf(step).discard(step));

    // One of two pieces counts, and the step is refused.
    begin(step);
    expectOk(passGradient(step, Tied));
    expectOk(passGradient(step, Extra));
    expectOk(applyStep(step));
    EXPECT_EQ(outcomeOf(step), ZERO_RT_REFUSED_MISSING_GRADIENT);
    EXPECT_EQ(countsOf(step), (Counts{0, 0, 1, 1}));

    // A step that is skipped.
    begin(step);
    passAll(step, HUGE_VALF);
    expectOk(applyStep(step));
    EXPECT_EQ(outcomeOf(step), ZERO_RT_SKIPPED_NONFINITE);
    EXPECT_EQ(countsOf(step), (Counts{1, 1, 1, 1}));

    begin(step);
    for (int32_t p : {Weight, Bias, Tied})
      expectOk(passPieces(step, p));
    expectOk(applyStep(step));
    EXPECT_EQ(outcomeOf(step), ZERO_RT_APPLIED);
    EXPECT_EQ(countsOf(step), (Counts{1, 1, 1, 0}));
  });
}

// A gradient that is refused does not count.
TEST(Delivered, DoesNotCountWhatIsRefused) {
  runCounting(1, [](int32_t, zero_rt_step *step) {
    begin(step);
    std::vector<float> wrong(2);
    zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, wrong);
    expectStatus(
        ZERO_RT_INVALID_ARGUMENT,
        callsOf(step).gradient(step, Extra, &tensor, nullptr, nullptr));
    for (int32_t p : {Weight, Bias, Tied})
      expectOk(passPieces(step, p));
    expectOk(applyStep(step));
    EXPECT_EQ(countsOf(step), (Counts{1, 1, 1, 0}));
  });
}

TEST(Delivered, CountsTheGradientsOfEachRank) {
  runCounting(2, [](int32_t rank, zero_rt_step *step) {
    for (int32_t b = 0; b < 3; ++b) {
      if (b > 0)
        expectOk(callsOf(step).accumulate(step));
      begin(step);
      for (int32_t p : {Weight, Bias, Tied})
        expectOk(passPieces(step, p));
      if (rank == 1 && b != 1)
        expectOk(passGradient(step, Extra));
    }
    expectOk(applyStep(step));
    EXPECT_EQ(outcomeOf(step), ZERO_RT_APPLIED);
    EXPECT_EQ(countsOf(step), (Counts{3, 3, 3, rank == 1 ? 2.0 : 0.0}));
  });
}

// Each stage counts all parameters, and has 0 for those that it lacks.
TEST(Delivered, IsZeroOnOtherStages) {
  LibraryBuilder first = makeCountingStep(2), second = makeCountingStep(2);
  for (LibraryBuilder *stage : {&first, &second}) {
    stage->axes = {{stage->addText("pp"), 2}, {stage->addText("dp"), 1}};
    stage->axisSets = {2, 3};
  }
  first.parameters[Extra].bucket = -1;
  for (int p : {Weight, Bias, Tied})
    second.parameters[size_t(p)].bucket = -1;
  first.stageAxes = 1;
  first.stages = {&first.get(), &second.get()};
  runSteps(first.get(), [](int32_t rank, zero_rt_step *step) {
    begin(step);
    for (int32_t p = 0; p < NumTrainParameters; ++p)
      if ((p == Extra) == (rank == 1))
        expectOk(passPieces(step, p));
    expectOk(applyStep(step));
    EXPECT_EQ(countsOf(step),
              rank == 0 ? (Counts{1, 1, 1, 0}) : (Counts{0, 0, 0, 1}));
  });
}

TEST(Delivered, RefusesBadArguments) {
  runCounting(1, [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    for (int32_t parameter : {-1, int32_t(NumTrainParameters)})
      expectStatus(ZERO_RT_INTERNAL,
                   calls.count_delivered(step, parameter, firstCount),
                   "count_delivered: parameter");
    for (int32_t slot : {-1, firstCount + NumTrainParameters})
      expectStatus(ZERO_RT_INTERNAL, calls.count_delivered(step, Weight, slot),
                   "count_delivered: scalar slots");
  });
}
