//===- MeasureTest.cpp - Results before a step is applied -----------------===//
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

void backward(zero_rt_step *step, float value) {
  expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
  passAll(step, value);
}

zero_rt_results resultsOf(zero_rt_step *step) {
  auto results = sized<zero_rt_results>();
  expectOk(callsOf(step).results(step, &results));
  return results;
}

double stepsOf(zero_rt_step *step) { return slotsOf(step)[Steps]; }

/// The bits that four steps leave, the norms that they report, and the number
/// of collectives. With |measures| each is measured first.
struct Trained {
  std::vector<uint16_t> bits;
  std::vector<double> norms;
  int64_t collectives = 0;
  double steps = 0;
};
std::vector<Trained> train(int32_t ranks, bool measures) {
  LibraryBuilder library = makeTrainStep(ranks);
  std::vector<Trained> trained(static_cast<size_t>(ranks));
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    Trained &mine = trained[size_t(rank)];
    bindParameter(step, Weight, 0.5f);
    for (int k = 0; k < 4; ++k) {
      for (int b = 0; b <= k % 2; ++b) {
        if (b > 0)
          expectOk(callsOf(step).accumulate(step));
        backward(step, float(k + b + rank + 1));
      }
      if (measures) {
        std::vector<uint16_t> before = parameterBits(step);
        expectOk(measureStep(step, 0.25));
        mine.norms.push_back(resultsOf(step).values[0]);
        EXPECT_EQ(parameterBits(step), before);
        // The inputs are known. To give them again changes nothing.
        const double rate = 0.25;
        expectOk(k == 1 ? callsOf(step).apply(step, &rate, 1, nullptr)
                        : callsOf(step).apply(step, nullptr, 0, nullptr));
        EXPECT_EQ(resultsOf(step).values[0], mine.norms.back());
      } else {
        expectOk(applyStep(step, 0.25));
        mine.norms.push_back(resultsOf(step).values[0]);
      }
    }
    mine.bits = parameterBits(step);
    mine.steps = stepsOf(step);
    zero_rt_counters counters = countersOf(runtimeOf(step));
    mine.collectives = counters.scalar_all_reduces + counters.reduce_scatters +
                       counters.all_gathers;
  });
  return trained;
}

TEST(Measure, AndApplyAreTheSameAsApply) {
  for (int32_t ranks : {1, 2, 3}) {
    std::vector<Trained> once = train(ranks, false);
    std::vector<Trained> twice = train(ranks, true);
    for (int32_t r = 0; r < ranks; ++r) {
      EXPECT_EQ(once[size_t(r)].bits, twice[size_t(r)].bits);
      EXPECT_EQ(once[size_t(r)].norms, twice[size_t(r)].norms);
      EXPECT_EQ(once[size_t(r)].collectives, twice[size_t(r)].collectives);
      EXPECT_EQ(twice[size_t(r)].steps, 4);
    }
  }
}

// The caller looks at the norm and gives the step up.
TEST(Measure, AndDiscardChangeNothing) {
  LibraryBuilder library = makeTrainStep(2);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    bindParameter(step, Weight, 0.5f);
    backward(step, 1);
    expectOk(applyStep(step));
    std::vector<uint16_t> before = parameterBits(step);
    zero_rt_counters counters = countersOf(runtimeOf(step));
    backward(step, 7);
    expectOk(measureStep(step));
    double norm = resultsOf(step).values[0];
    EXPECT_GT(norm, 0);
    expectOk(callsOf(step).discard(step));
    EXPECT_EQ(parameterBits(step), before);
    EXPECT_EQ(stepsOf(step), 1);
    EXPECT_EQ(countersOf(runtimeOf(step)).all_gathers, counters.all_gathers);
    // What measure reported stays readable, and the next step is a new one.
    EXPECT_EQ(resultsOf(step).values[0], norm);
    backward(step, 1);
    expectOk(applyStep(step));
    EXPECT_EQ(stepsOf(step), 2);
    EXPECT_LT(resultsOf(step).values[0], norm);
  });
}

TEST(Measure, InputsAreThoseOfMeasure) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    bindParameter(step, Weight, 0.5f);
    backward(step, 1);
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.measure(step, nullptr, 0, nullptr),
                 "measure got 0 inputs, 'train' takes 1");
    expectOk(measureStep(step, 0.5));
    std::vector<uint16_t> before = parameterBits(step);
    expectStatus(ZERO_RT_INVALID_ARGUMENT, applyStep(step, 0.25),
                 "input 0 ('lr') of apply is 0.25, and that of measure was "
                 "0.5: pass the same, or discard the step");
    double inputs[2] = {0.5, 0.5};
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.apply(step, inputs, 2, nullptr),
                 "apply got 2 inputs, 'train' takes 1");
    EXPECT_EQ(parameterBits(step), before);
    expectOk(applyStep(step, 0.5));
    EXPECT_NE(parameterBits(step), before);
  });
}

// What depends on whether the step is applied is not known yet.
TEST(Measure, LeavesWhatIsNextOpen) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    const char *decide = "the step was measured; call apply or discard first";
    for (bool applies : {true, false}) {
      backward(step, 1);
      expectOk(measureStep(step));
      double scale = 0;
      expectStatus(ZERO_RT_PROTOCOL, calls.loss_scale(step, &scale), decide);
      uint16_t data[3] = {};
      expectStatus(ZERO_RT_PROTOCOL, calls.state_read(step, 1, data, 6),
                   decide);
      expectStatus(ZERO_RT_PROTOCOL, calls.state_write(step, 1, data, 6),
                   "only allowed in state 'idle'");
      expectStatus(ZERO_RT_PROTOCOL, calls.end_backward(step, 1));
      auto view = sized<zero_rt_tensor>();
      expectOk(calls.parameter(step, Weight, &view));
      expectOk(calls.parameter_wait(step, -1, nullptr));
      expectOk(applies ? calls.apply(step, nullptr, 0, nullptr)
                       : calls.discard(step));
      expectOk(calls.loss_scale(step, &scale));
      EXPECT_EQ(scale, 1024);
    }
  });
}

// The outcome is that of apply, and so is the message.
TEST(Measure, TellsWhatApplyWillDo) {
  LibraryBuilder library = makeTrainStep(2);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    bindParameter(step, Weight, 0.5f);
    std::vector<uint16_t> before = parameterBits(step);
    auto results = sized<zero_rt_results>();
    for (bool applies : {true, false}) {
      expectOk(calls.begin_backward(step, ZERO_RT_HINT_UNKNOWN));
      for (int32_t p : {Bias, Tied, Extra})
        expectOk(passPieces(step, p));
      if (rank == 0)
        expectOk(passPieces(step, Weight));
      expectOk(measureStep(step));
      for (int k = 0; k < 2; ++k) {
        expectStatus(ZERO_RT_MISSING_GRADIENT, calls.results(step, &results),
                     "gradient of 'fc1.weight' never arrived on rank 1");
        EXPECT_EQ(results.verdict, ZERO_RT_REFUSED_MISSING_GRADIENT);
        if (k == 0)
          expectOk(applies ? calls.apply(step, nullptr, 0, nullptr)
                           : calls.discard(step));
      }
      EXPECT_EQ(parameterBits(step), before);
      EXPECT_EQ(stepsOf(step), 0);
    }
    backward(step, rank == 1 ? HUGE_VALF : 1);
    expectOk(measureStep(step));
    EXPECT_EQ(resultsOf(step).verdict, ZERO_RT_SKIPPED_NONFINITE);
    expectOk(calls.apply(step, nullptr, 0, nullptr));
    EXPECT_EQ(parameterBits(step), before);
  });
}

// Ranks measure together, and then apply together. With checks, a rank that
// does something else is named before anything runs.
TEST(Measure, IsCheckedLikeApply) {
  LibraryBuilder library = makeTrainStep(2);
  Options options;
  options.checkPreconditions = true;
  runSteps(
      library.get(),
      [](int32_t rank, zero_rt_step *step) {
        const zero_rt_calls &calls = callsOf(step);
        bindParameter(step, Weight, 0.5f);
        backward(step, 1);
        expectStatus(ZERO_RT_MISMATCH,
                     rank == 0 ? measureStep(step) : applyStep(step),
                     "rank 1 calls apply, rank 0 calls measure");
        expectStatus(ZERO_RT_MISMATCH, measureStep(step, 1 + rank),
                     "input 0 of measure is 2 on rank 1, and 1 on rank 0");
        expectOk(measureStep(step));
        expectStatus(ZERO_RT_MISMATCH,
                     rank == 0 ? calls.apply(step, nullptr, 0, nullptr)
                               : calls.discard(step),
                     "rank 1 calls discard, rank 0 calls apply");
        expectOk(calls.apply(step, nullptr, 0, nullptr));
        EXPECT_EQ(stepsOf(step), 1);
      },
      options);
}

// A library that was compiled without it.
TEST(Measure, NeedsATransition) {
  LibraryBuilder library = makeTrainStep(1);
  auto &rows = library.transitions;
  rows.erase(std::remove_if(rows.begin(), rows.end(),
                            [](const zero_rt_transition_row &row) {
                              return row.event == ZERO_RT_EVENT_MEASURE;
                            }),
             rows.end());
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    backward(step, 1);
    expectStatus(ZERO_RT_PROTOCOL, measureStep(step),
                 "measure in state 'first': the compiled protocol does not "
                 "allow it; compile the step again");
    expectOk(applyStep(step));
  });
}

} // namespace
