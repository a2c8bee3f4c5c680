//===- StepTest.cpp - Whole steps: update, skip, refuse -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/step.h"
#include "Ranks.h"
#include "TrainStep.h"
#include "core/numeric.h"

#include <cmath>
#include <limits>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

zero_rt_results resultsOf(zero_rt_step *step, zero_rt_status expected,
                          const char *text = "") {
  auto results = sized<zero_rt_results>();
  expectStatus(expected, callsOf(step).results(step, &results), text);
  return results;
}

/// All parameters of a step, pads left out.
std::vector<float> parametersOf(zero_rt_step *step) {
  std::vector<float> all;
  for (uint16_t bits : parameterBits(step))
    all.push_back(floatFromBF16(bits));
  return all;
}

/// What |total| times the gradient of `passAll` makes of zeros; the second
/// segment begins with `tied` and has twice the rate.
std::vector<float> expectedParameters(float total) {
  std::vector<float> all;
  for (int32_t p = 0; p < NumTrainParameters; ++p)
    for (int64_t i = 0; i < trainSizes[p]; ++i)
      all.push_back(-total * float(i + 1) * (p < Tied ? 1 : 2));
  return all;
}

double expectedNorm(double total) {
  double sum = 0;
  for (int32_t p = 0; p < NumTrainParameters; ++p)
    for (int64_t i = 0; i < trainSizes[p]; ++i)
      sum += total * double(i + 1) * total * double(i + 1);
  return std::sqrt(sum);
}

// 1 to 4 ranks, 1 to 3 backward passes, closed by accumulate or by apply: sums
// small enough to be exact, so all must be equal.
TEST(Step, UpdatesLikeOneRank) {
  for (int32_t ranks : {1, 2, 3, 4}) {
    LibraryBuilder library = makeTrainStep(ranks);
    for (int backwards : {1, 2, 3}) {
      for (bool close : {false, true}) {
        runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
          const zero_rt_calls &calls = callsOf(step);
          for (int b = 0; b < backwards; ++b) {
            expectOk(calls.begin_backward(step, 0));
            passAll(step, float(rank + b));
            if (close || b + 1 < backwards)
              expectOk(calls.accumulate(step));
          }
          expectOk(applyStep(step, 0.125));
          // Sum over ranks and backward passes of rank + b.
          int total = backwards * ranks * (ranks - 1) / 2 +
                      ranks * backwards * (backwards - 1) / 2;
          zero_rt_results results = resultsOf(step, ZERO_RT_OK);
          EXPECT_EQ(results.verdict, ZERO_RT_APPLIED);
          EXPECT_EQ(results.backwards, backwards);
          EXPECT_EQ(results.num_values, 1);
          EXPECT_DOUBLE_EQ(results.values[0], expectedNorm(total));
          std::vector<float> expected =
              expectedParameters(0.125f * float(total));
          for (float &value : expected)
            value = floatFromBF16(bf16FromFloat(value));
          EXPECT_EQ(parametersOf(step), expected);
        });
      }
    }
  }
}

// Everything that one step allocates, launches and sends, to the byte.
TEST(Step, CountersAreExact) {
  LibraryBuilder library = makeTrainStep(3);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    passAll(step);
    expectOk(calls.accumulate(step));
    expectOk(calls.begin_backward(step, 0));
    passAll(step);
    expectOk(applyStep(step));
    zero_rt_counters counters = countersOf(runtimeOf(step));
    const int64_t now[] = {24 * 2, 8 * 4, 0, 8 * 4, 15 * 8, 0};
    const int64_t peak[] = {24 * 2, 8 * 4 + 24 * 4, 24 * 4, 8 * 4, 15 * 8, 0};
    const int64_t allocations[] = {1, 2, 0, 1, 1, 0};
    for (int role = 0; role < ZERO_RT_ROLE_COUNT; ++role) {
      EXPECT_EQ(counters.bytes_now[0][role], now[role]) << role;
      EXPECT_EQ(counters.bytes_peak[0][role], peak[role]) << role;
      EXPECT_EQ(counters.allocations[0][role], allocations[role]) << role;
      EXPECT_EQ(counters.allocations[1][role], 0) << role;
    }
    EXPECT_EQ(counters.launches, 2 * (NumTrainParameters + 1) + 2);
    EXPECT_EQ(counters.reduce_scatters, 1);
    EXPECT_EQ(counters.all_gathers, 1);
    EXPECT_EQ(counters.all_reduces, 0);
    EXPECT_EQ(counters.scalar_all_reduces, 1);
    // 96 bytes of gradients, 48 of parameters, 32 of scalars twice.
    EXPECT_EQ(counters.bytes_sent, 96 * 2 / 3 + 48 * 2 / 3 + 2 * 32 * 2 / 3);
    EXPECT_EQ(counters.bytes_copied_between_spaces, 0);
  });
}

// One rank lacks gradients: all refuse, all can say which, nobody changes.
TEST(Step, AMissingGradientRefusesOnAllRanks) {
  LibraryBuilder library = makeTrainStep(3);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    for (int b = 0; b < 4; ++b) {
      expectOk(calls.begin_backward(step, 0));
      for (int32_t p : {Weight, Bias, Tied})
        if (rank != 2 || b != 0 || p != Bias)
          expectOk(passPieces(step, p));
      expectOk(calls.accumulate(step));
    }
    expectOk(applyStep(step));
    const char *text = "step refused: gradient of 'fc1.bias' never arrived on "
                       "rank 2 (backward pass 1 of 4)";
    zero_rt_results results = resultsOf(step, ZERO_RT_MISSING_GRADIENT, text);
    EXPECT_STREQ(zero_rt_message(), text);
    EXPECT_EQ(results.verdict, ZERO_RT_REFUSED_MISSING_GRADIENT);
    EXPECT_EQ(results.backwards, 4);
    EXPECT_EQ(parametersOf(step), expectedParameters(0));
    // The exchange of names is no collective of a step.
    EXPECT_EQ(countersOf(runtimeOf(step)).scalar_all_reduces, 1);

    // The next step is a good one, although the optional one never comes.
    expectOk(calls.begin_backward(step, 0));
    for (int32_t p : {Weight, Bias, Tied})
      expectOk(passPieces(step, p));
    expectOk(applyStep(step));
    EXPECT_EQ(resultsOf(step, ZERO_RT_OK).backwards, 1);
    EXPECT_NE(parametersOf(step), expectedParameters(0));
  });
}

// Part of a gradient is none, not even of an optional one; a slot that was
// never declared ready is no gradient either. All ranks refuse, and name both.
TEST(Step, GradientsInPartAreRefused) {
  LibraryBuilder library = makeTrainStep(2);
  library.parameters[Extra].uses = 3;
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    for (int32_t p : {Weight, Bias})
      if (rank == 0 || p == Weight)
        expectOk(passGradient(step, p));
    expectOk(passGradient(step, Tied));
    if (rank == 0) {
      expectOk(passGradient(step, Tied));
    } else {
      auto slot = sized<zero_rt_tensor>();
      double beta = -1;
      expectOk(calls.gradient_slot(step, Bias, nullptr, &slot, &beta));
      expectOk(passGradient(step, Extra));
      expectOk(passGradient(step, Extra));
    }
    expectOk(applyStep(step));
    resultsOf(
        step, ZERO_RT_MISSING_GRADIENT,
        "step refused: gradient of 'fc1.bias' has a gradient view and no "
        "gradient_ready on rank 1 (backward pass 1 of 1), gradient of 'tied' "
        "arrived in 1 of 2 pieces on rank 1 (backward pass 1 of 1), gradient "
        "of 'extra' arrived in 2 of 3 pieces on rank 1 (backward pass 1 of 1)");
    EXPECT_EQ(parametersOf(step), expectedParameters(0));
  });
}

TEST(Step, ManyMissingGradientsAreCounted) {
  LibraryBuilder library = makeTrainStep(2);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    expectOk(calls.accumulate(step));
    expectOk(calls.begin_backward(step, 0));
    if (rank == 0)
      passAll(step);
    expectOk(applyStep(step));
    // 3 on rank 0 and 6 on rank 1, of which 4 are named.
    resultsOf(
        step, ZERO_RT_MISSING_GRADIENT,
        "gradient of 'tied' never arrived on rank 0 (backward pass 1 of 2), "
        "gradient of 'fc1.weight' never arrived on rank 1 (backward pass 1 of "
        "2) and 5 more");
  });
}

TEST(Step, UnequalBackwardsAreRefused) {
  LibraryBuilder library = makeTrainStep(3);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    for (int b = 0; b < (rank == 1 ? 3 : 2); ++b) {
      expectOk(callsOf(step).begin_backward(step, 0));
      passAll(step);
      expectOk(callsOf(step).accumulate(step));
    }
    expectOk(applyStep(step));
    zero_rt_results results =
        resultsOf(step, ZERO_RT_MISMATCH,
                  "step refused: ranks made unequal numbers of backward "
                  "passes: rank 0 made 2, "
                  "rank 1 made 3, rank 2 made 2");
    EXPECT_EQ(results.verdict, ZERO_RT_REFUSED_UNEQUAL_BACKWARDS);
    EXPECT_EQ(results.backwards, rank == 1 ? 3 : 2);
    EXPECT_EQ(parametersOf(step), expectedParameters(0));
  });
}

TEST(Step, NonfiniteGradientsSkip) {
  LibraryBuilder library = makeTrainStep(2);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    expectOk(callsOf(step).begin_backward(step, 0));
    passAll(step, rank == 1 ? std::numeric_limits<float>::infinity() : 1);
    expectOk(applyStep(step));
    zero_rt_results results = resultsOf(step, ZERO_RT_OK);
    EXPECT_EQ(results.verdict, ZERO_RT_SKIPPED_NONFINITE);
    EXPECT_EQ(parametersOf(step), expectedParameters(0));
  });
}

TEST(Step, NonfiniteGradientsAreFound) {
  LibraryBuilder library = makeTrainStep(2);
  Options options;
  options.findNonfinite = true;
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  runSteps(
      library.get(),
      [](int32_t rank, zero_rt_step *step) {
        auto expectMessage = [&](const char *message) {
          EXPECT_EQ(resultsOf(step, ZERO_RT_OK).verdict,
                    ZERO_RT_SKIPPED_NONFINITE);
          EXPECT_STREQ(zero_rt_message(), message);
        };
        for (float bad : {kInfinite, -kInfinite, std::nanf("")}) {
          for (int b = 0; b < 2; ++b) {
            expectOk(callsOf(step).begin_backward(step, 0));
            for (int32_t p : {Weight, Bias, Tied, Tied, Extra})
              expectOk(passGradient(
                  step, p, rank == 1 && b == 1 && p == Bias ? bad : 1));
            if (b == 0)
              expectOk(callsOf(step).accumulate(step));
          }
          expectOk(applyStep(step));
          expectMessage("step skipped: gradient of 'fc1.bias' on rank 1 "
                        "(backward pass 2 of 2) is not finite");
        }
        // Nothing is left of what a discarded window had.
        expectOk(callsOf(step).begin_backward(step, 0));
        passAll(step, kInfinite);
        expectOk(callsOf(step).discard(step));
        // Finite gradients with an infinite sum.
        expectOk(callsOf(step).begin_backward(step, 0));
        passAll(step, 3e37f);
        expectOk(applyStep(step));
        expectMessage("step skipped: every gradient is finite, and a sum of "
                      "them is not");
        expectOk(callsOf(step).begin_backward(step, 0));
        passAll(step, rank == 0 ? kInfinite : 1);
        expectOk(applyStep(step));
        expectMessage("step skipped: gradient of 'fc1.weight' on rank 0 "
                      "(backward pass 1 of "
                      "1), gradient of 'fc1.bias' on rank 0 (backward pass 1 "
                      "of 1), gradient "
                      "of 'tied' on rank 0 (backward pass 1 of 1), gradient of "
                      "'extra' on "
                      "rank 0 (backward pass 1 of 1) are not finite");
      },
      options);
}

TEST(Step, DiscardForgetsTheWindow) {
  LibraryBuilder library = makeTrainStep(2);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    expectOk(passGradient(step, Weight, 100));
    expectOk(calls.accumulate(step)); // two are missing
    expectOk(calls.discard(step));
    expectOk(calls.begin_backward(step, 0));
    passAll(step, 1);
    expectOk(applyStep(step));
    EXPECT_EQ(resultsOf(step, ZERO_RT_OK).backwards, 1);
    EXPECT_EQ(parametersOf(step), expectedParameters(2));
  });
}

TEST(Step, NonfiniteCanBeAnError) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    expectOk(callsOf(step).begin_backward(step, 0));
    passAll(step);
    expectOk(applyStep(step));
    slotsOf(step)[Verdict] = ZERO_RT_REFUSED_NONFINITE;
    expectOk(callsOf(step).commit(step, Verdict));
    resultsOf(step, ZERO_RT_NONFINITE,
              "step refused: a gradient is not finite");
  });
}

TEST(Step, AVerdictMustBeOne) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    for (double value : {-1.0, 0.5, 6.0, std::nan("")}) {
      slotsOf(step)[Verdict] = value;
      expectStatus(ZERO_RT_INTERNAL, callsOf(step).commit(step, Verdict),
                   "is not an outcome");
    }
    expectStatus(ZERO_RT_INTERNAL, callsOf(step).commit(step, 15),
                 "commit: scalar slots [15, 16) of 15");
  });
}

} // namespace
