//===- InputTest.cpp - Inputs of apply that fail their checks -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"
#include "core/numeric.h"

#include <cmath>
#include <limits>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The train step with a second hyperparameter that has no name, and with a
/// metric, which is the second result. |check| is that of the metric.
LibraryBuilder makeStep(int32_t ranks, int64_t check = ZERO_RT_INPUT_FREE) {
  LibraryBuilder library = makeTrainStep(ranks);
  int64_t decay = library.addSlot("wd");
  int64_t metric = library.addSlot("loss");
  library.inputs.push_back(
      {decay, -1, /*tokens=*/0, ZERO_RT_INPUT_FINITE, library.addText("")});
  library.inputs.push_back(
      {metric, -1, /*tokens=*/0, check, library.addText("")});
  library.results.push_back({library.addText("loss"), metric});
  return library;
}

void applyInputs(zero_rt_step *step, std::vector<double> inputs) {
  expectOk(callsOf(step).apply(step, inputs.data(), int32_t(inputs.size()),
                               nullptr));
}

void deliver(zero_rt_step *step) {
  expectOk(callsOf(step).begin_backward(step, 0));
  passAll(step);
}

/// Expects that the last apply ended with |verdict| and exactly |message|.
void expectVerdict(zero_rt_step *step, int32_t verdict, zero_rt_status status,
                   const std::string &message) {
  auto results = sized<zero_rt_results>();
  expectStatus(status, callsOf(step).results(step, &results), message.c_str());
  if (status)
    EXPECT_EQ(zero_rt_message(), message);
  EXPECT_EQ(results.verdict, verdict);
}

/// The bytes of all state of this rank.
std::vector<char> readState(zero_rt_step *step) {
  int64_t count = 0;
  expectOk(callsOf(step).state_count(step, &count));
  std::vector<char> state;
  for (int64_t i = 0; i < count; ++i) {
    auto entry = sized<zero_rt_state_entry>();
    expectOk(callsOf(step).state_describe(step, i, &entry));
    int64_t bytes = (entry.end - entry.begin) * elementSize(entry.dtype);
    state.resize(state.size() + size_t(bytes));
    expectOk(callsOf(step).state_read(
        step, i, state.data() + state.size() - size_t(bytes), bytes));
  }
  EXPECT_FALSE(state.empty());
  return state;
}

// Each number that is not finite, on one rank and on all: all ranks refuse, all
// say which input it was on which rank, nobody changes, and the next step with
// a good rate is applied.
TEST(Input, OneThatIsNotFiniteRefusesOnAllRanks) {
  const std::pair<double, const char *> numbers[] = {
      {kNan, "nan"}, {kInfinity, "inf"}, {-kInfinity, "-inf"}};
  for (int32_t ranks : {1, 2, 3}) {
    LibraryBuilder library = makeStep(ranks);
    runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
      bindParameter(step, Weight, 3);
      deliver(step);
      applyInputs(step, {0.125, 0, 0});
      for (const auto &[number, word] : numbers) {
        std::vector<char> before = readState(step);
        std::string text = "input 0 ('lr') of apply is " + std::string(word);
        deliver(step);
        applyInputs(step, {rank == ranks - 1 ? number : 0.125, 0, 0});
        expectVerdict(step, ZERO_RT_REFUSED_INPUT, ZERO_RT_INVALID_ARGUMENT,
                      "step refused: " + text + " on rank " +
                          std::to_string(ranks - 1) + "; pass finite numbers");
        EXPECT_EQ(readState(step), before);

        deliver(step);
        applyInputs(step, {number, 0, 0});
        std::string all;
        for (int32_t r = 0; r < ranks; ++r)
          all += (r ? ", " : "") + text + " on rank " + std::to_string(r);
        expectVerdict(step, ZERO_RT_REFUSED_INPUT, ZERO_RT_INVALID_ARGUMENT,
                      "step refused: " + all + "; pass finite numbers");
        EXPECT_EQ(readState(step), before);

        deliver(step);
        applyInputs(step, {0.125, 0, 0});
        expectVerdict(step, ZERO_RT_APPLIED, ZERO_RT_OK, "");
        EXPECT_NE(readState(step), before);
      }
    });
  }
}

TEST(Input, EachRankMayHaveAnother) {
  LibraryBuilder library = makeStep(3);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    std::vector<char> before = readState(step);
    deliver(step);
    applyInputs(step, {rank == 0 ? kNan : 1, rank == 2 ? -kInfinity : 0, kNan});
    expectVerdict(step, ZERO_RT_REFUSED_INPUT, ZERO_RT_INVALID_ARGUMENT,
                  "step refused: input 0 ('lr') of apply is nan on rank 0, "
                  "input 1 of apply is -inf on rank 2; pass finite numbers");
    // More than are named.
    deliver(step);
    applyInputs(step, {kNan, kInfinity, 0});
    expectVerdict(step, ZERO_RT_REFUSED_INPUT, ZERO_RT_INVALID_ARGUMENT,
                  "step refused: input 0 ('lr') of apply is nan on rank 0, "
                  "input 1 of apply is inf on rank 0, input 0 ('lr') of apply "
                  "is nan on rank 1, input 1 of apply is inf on rank 1 and 2 "
                  "more; pass finite numbers");
    EXPECT_EQ(readState(step), before);
  });
}

TEST(Input, OneThatMustBePositiveRefusesOnAllRanks) {
  LibraryBuilder library = makeStep(2, ZERO_RT_INPUT_POSITIVE);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    std::vector<char> before = readState(step);
    const std::pair<double, const char *> numbers[] = {
        {0.0, "0"},    {-0.0, "-0"},       {-0.5, "-0.5"},
        {kNan, "nan"}, {kInfinity, "inf"}, {-kInfinity, "-inf"}};
    for (const auto &[number, word] : numbers) {
      deliver(step);
      applyInputs(step, {1, 0, rank == 1 ? number : 0.5});
      expectVerdict(step, ZERO_RT_REFUSED_INPUT, ZERO_RT_INVALID_ARGUMENT,
                    "step refused: input 2 of apply is " + std::string(word) +
                        " on rank 1; pass finite numbers, and a positive max "
                        "norm");
      EXPECT_EQ(readState(step), before);
    }
    deliver(step);
    applyInputs(step, {1, 0, std::numeric_limits<double>::denorm_min()});
    expectVerdict(step, ZERO_RT_APPLIED, ZERO_RT_OK, "");
  });
}

TEST(Input, AMetricMayBeNan) {
  LibraryBuilder library = makeStep(2);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    std::vector<char> before = readState(step);
    deliver(step);
    applyInputs(step, {1, 0, rank == 0 ? kNan : kInfinity});
    auto results = sized<zero_rt_results>();
    expectOk(callsOf(step).results(step, &results));
    EXPECT_EQ(results.verdict, ZERO_RT_APPLIED);
    EXPECT_EQ(std::isnan(results.values[1]), rank == 0);
    EXPECT_EQ(std::isinf(results.values[1]), rank == 1);
    EXPECT_NE(readState(step), before);
  });
}

// The verdict is that of what the program of the step counts; both are named.
TEST(Input, WhatElseIsWrongIsNamedAsWell) {
  LibraryBuilder library = makeStep(2);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    std::vector<char> before = readState(step);
    const char *inputs = "; input 0 ('lr') of apply is nan on rank 0; pass "
                         "finite numbers";
    expectOk(callsOf(step).begin_backward(step, 0));
    for (int32_t p : {Weight, Bias, Tied})
      if (rank == 0 || p != Bias)
        expectOk(passPieces(step, p));
    applyInputs(step, {rank == 0 ? kNan : 1, 0, 0});
    expectVerdict(step, ZERO_RT_REFUSED_MISSING_GRADIENT,
                  ZERO_RT_MISSING_GRADIENT,
                  "step refused: gradient of 'fc1.bias' never arrived on rank "
                  "1 (backward pass 1 of 1)" +
                      std::string(inputs));
    EXPECT_EQ(readState(step), before);

    // A gradient that is not finite would skip the step.
    expectOk(callsOf(step).begin_backward(step, 0));
    passAll(step, std::numeric_limits<float>::infinity());
    applyInputs(step, {rank == 0 ? kNan : 1, 0, 0});
    expectVerdict(step, ZERO_RT_REFUSED_INPUT, ZERO_RT_INVALID_ARGUMENT,
                  "step refused" + std::string(inputs).replace(0, 1, ":"));
    EXPECT_EQ(readState(step), before);
  });
}

TEST(Input, RanksThatPassOthersRefuse) {
  for (int32_t ranks : {2, 3}) {
    LibraryBuilder library = makeStep(ranks);
    runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
      bindParameter(step, Weight, 3);
      for (int32_t other = 0; other < ranks; ++other) {
        std::vector<char> before = readState(step);
        deliver(step);
        applyInputs(step, {rank == other ? 0.25 : 0.125, 0, 0});
        std::string numbers = other == 0 ? "0.25 on rank 0 and 0.125 on rank 1"
                                         : "0.125 on rank 0 and 0.25 on rank " +
                                               std::to_string(other);
        expectVerdict(step, ZERO_RT_REFUSED_INPUT, ZERO_RT_MISMATCH,
                      "step refused: input 0 ('lr') of apply is " + numbers +
                          "; pass the same on all ranks");
        EXPECT_EQ(readState(step), before);
      }
      // In the last bit, and where another difference could undo it.
      deliver(step);
      double next = std::nextafter(0.125, 1);
      applyInputs(step, {0.125, rank == 1 ? next : 0.125, 0});
      expectVerdict(step, ZERO_RT_REFUSED_INPUT, ZERO_RT_MISMATCH,
                    "step refused: input 1 of apply is 0.125 on rank 0 and "
                    "0.12500000000000003 on rank 1; pass the same on all "
                    "ranks");
      deliver(step);
      applyInputs(step, {rank % 2 ? 1.0 : 2.0, rank % 2 ? 2.0 : 1.0, 0});
      expectVerdict(step, ZERO_RT_REFUSED_INPUT, ZERO_RT_MISMATCH,
                    "step refused: input 0 ('lr') of apply is 2 on rank 0 and "
                    "1 on rank 1; pass the same on all ranks");
      // One number, and a metric that each rank has for itself.
      std::vector<char> before = readState(step);
      deliver(step);
      applyInputs(step, {0.125, rank ? 0.0 : -0.0, double(rank)});
      expectVerdict(step, ZERO_RT_APPLIED, ZERO_RT_OK, "");
      EXPECT_NE(readState(step), before);
    });
  }
}

// More inputs than a report has room for.
TEST(Input, ALateOneIsFoundByItsDigest) {
  LibraryBuilder library = makeTrainStep(2);
  for (int i = 0; i < 40; ++i)
    library.inputs.push_back({library.addSlot("h"), -1, /*tokens=*/0,
                              ZERO_RT_INPUT_FINITE, library.addText("")});
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    deliver(step);
    std::vector<double> inputs(41, 0.5);
    inputs[35] += rank;
    applyInputs(step, inputs);
    expectVerdict(step, ZERO_RT_REFUSED_INPUT, ZERO_RT_MISMATCH,
                  "step refused: an input of apply after input 29 differs "
                  "between rank 0 and rank 1; pass the same on all ranks");
  });
}

TEST(Input, OthersAreNamedBesideAMissingGradient) {
  LibraryBuilder library = makeStep(2);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    expectOk(callsOf(step).begin_backward(step, 0));
    for (int32_t p : {Weight, Bias, Tied})
      if (rank == 0 || p != Bias)
        expectOk(passPieces(step, p));
    applyInputs(step, {rank == 0 ? 2.0 : 1, 0, 0});
    expectVerdict(step, ZERO_RT_REFUSED_MISSING_GRADIENT,
                  ZERO_RT_MISSING_GRADIENT,
                  "step refused: gradient of 'fc1.bias' never arrived on rank "
                  "1 (backward pass 1 of 1); input 0 ('lr') of apply is 2 on "
                  "rank 0 and 1 on rank 1; pass the same on all ranks");
  });
}

TEST(Input, AMeasuredStepRefusesOthers) {
  LibraryBuilder library = makeTrainStep(2);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    deliver(step);
    expectOk(measureStep(step, rank + 1.0));
    expectVerdict(step, ZERO_RT_REFUSED_INPUT, ZERO_RT_MISMATCH,
                  "step refused: input 0 ('lr') of apply is 1 on rank 0 and 2 "
                  "on rank 1; pass the same on all ranks");
  });
}

} // namespace
