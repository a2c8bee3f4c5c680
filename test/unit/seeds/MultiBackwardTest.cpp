//===- MultiBackwardTest.cpp - The run of report #7981 --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The report's run: a three-layer MLP under Adam with rate 1e-3, one
// accumulation step by configuration, and four backward passes all the same.
// Its tests are here as well: several backward passes equal an unpartitioned
// step, one backward pass pays for no accumulator, and no step leaks into the
// next.
//
//===----------------------------------------------------------------------===//

#include "Mlp.h"

#include <cmath>

using namespace zero;
using namespace zero::test;

namespace {

constexpr double kRate = 1e-3;

constexpr const char *kOffload = "offload=optimizer";

struct Configuration {
  int64_t ranks;
  int stage;
  /// More options of --zero-lower.
  std::string pipeline = "";

  Way getWay() const { return {How::compiled, stage, pipeline}; }
};

class MultiBackward : public testing::TestWithParam<Configuration> {
protected:
  MultiBackward() {
    text.ranks = GetParam().ranks;
    text.optimizer = "adam";
    text.parameters = mlp.listParameters();
  }

  /// A step that starts from the model's initial values.
  std::unique_ptr<Step> start(const Way &way) const {
    auto step = std::make_unique<Step>(text, way);
    for (const auto &entry : mlp.getInitial())
      step->bind(entry.getKey().str(), entry.getValue());
    return step;
  }

  Backward getValues(Step &step) const {
    Backward values;
    for (const ParameterText &parameter : text.parameters)
      values[parameter.name] = step.get(parameter.name);
    return values;
  }

  Window getWindow(Step &step, int64_t number, int64_t backwards) const {
    return mlp.getWindow(getValues(step), number, text.ranks, backwards);
  }

  /// How many elements of |actual| rounding does not explain.
  int64_t countOutside(Step &actual, Step &reference) const {
    int64_t outside = 0;
    for (const ParameterText &parameter : text.parameters)
      for (auto [value, number] :
           llvm::zip_equal(actual.get(parameter.name),
                           reference.getNumbers(parameter.name)))
        outside += !(std::fabs(value - number.value) <= number.bound);
    return outside;
  }

  Mlp mlp{{24, 32, 32, 8}};
  StepText text;
};

std::string
nameOfConfiguration(const testing::TestParamInfo<Configuration> &info) {
  return "ranks" + std::to_string(info.param.ranks) + "_" +
         nameOf({info.param.getWay(), 0});
}

/// Bytes in use on |rank|, by space and role.
std::vector<int64_t> getBytesInUse(Step &step, int64_t rank) {
  zero_rt_counters counters = *step.getEngine().getCounters(rank);
  const int64_t *first = counters.bytes_now[0];
  return {first, first + 2 * ZERO_RT_ROLE_COUNT};
}

} // namespace

// The report: intermediate backward passes were lost. Gradients come from the
// compiled step's own parameters; the reference is the logical step, in f64.
TEST_P(MultiBackward, EqualsTheUnpartitionedStep) {
  for (int64_t backwards : {1, 4}) {
    auto compiled = start(GetParam().getWay());
    auto reference = start({How::logical});
    auto lastOnly = start({How::logical});
    for (int64_t number = 0; number < 3; ++number) {
      Window window = getWindow(*compiled, number, backwards);
      ASSERT_TRUE(mlir::succeeded(compiled->apply(kRate, window)));
      ASSERT_TRUE(mlir::succeeded(reference->apply(kRate, window)));
      EXPECT_EQ(countOutside(*compiled, *reference), 0) << number;
      for (std::vector<Backward> &rank : window)
        rank.erase(rank.begin(), rank.end() - 1);
      ASSERT_TRUE(mlir::succeeded(lastOnly->apply(kRate, window)));
    }
    // What the bug made of it is far outside.
    int64_t elements = 0;
    for (const ParameterText &parameter : text.parameters)
      elements += parameter.elements;
    int64_t outside = countOutside(*lastOnly, *reference);
    if (backwards == 1)
      EXPECT_EQ(outside, 0);
    else
      EXPECT_GT(outside, elements * 9 / 10);
  }
}

// The report's title: with offload. Where state lives is not what it is.
TEST_P(MultiBackward, OffloadChangesNoBit) {
  auto here = start({How::compiled, GetParam().stage});
  auto onHost = start({How::compiled, GetParam().stage, kOffload});
  int64_t number = 0;
  for (int64_t backwards : {1, 4, 2}) {
    Window window = getWindow(*here, number++, backwards);
    ASSERT_TRUE(mlir::succeeded(here->apply(kRate, window)));
    ASSERT_TRUE(mlir::succeeded(onHost->apply(kRate, window)));
    for (const ParameterText &parameter : text.parameters)
      EXPECT_EQ(here->get(parameter.name), onHost->get(parameter.name))
          << parameter.name << " after " << backwards;
  }
  zero_rt_counters counters = *onHost->getEngine().getCounters(0);
  EXPECT_EQ(counters.bytes_now[ZERO_RT_SPACE_DEVICE][ZERO_RT_ROLE_STATE], 0);
  EXPECT_GT(counters.bytes_now[ZERO_RT_SPACE_HOST][ZERO_RT_ROLE_STATE], 0);
}

// The report's guard of the fast path.
TEST_P(MultiBackward, OneBackwardHasNoAccumulator) {
  auto step = start(GetParam().getWay());
  for (int64_t number = 0; number < 2; ++number)
    ASSERT_TRUE(
        mlir::succeeded(step->apply(kRate, getWindow(*step, number, 1))));
  for (int64_t rank = 0; rank < text.ranks; ++rank) {
    zero_rt_counters counters = *step->getEngine().getCounters(rank);
    for (int space : {ZERO_RT_SPACE_DEVICE, ZERO_RT_SPACE_HOST}) {
      EXPECT_EQ(counters.bytes_peak[space][ZERO_RT_ROLE_ACCUMULATOR], 0);
      EXPECT_EQ(counters.allocations[space][ZERO_RT_ROLE_ACCUMULATOR], 0);
    }
  }
}

// The report's guard against leaks of state, with counts that change; and of
// memory.
TEST_P(MultiBackward, NothingLeaksIntoTheNextStep) {
  auto compiled = start(GetParam().getWay());
  auto reference = start({How::logical});
  std::vector<std::vector<int64_t>> before;
  for (int64_t rank = 0; rank < text.ranks; ++rank)
    before.push_back(getBytesInUse(*compiled, rank));
  int64_t number = 0;
  for (int64_t backwards : {1, 4, 2, 7, 1}) {
    Window window = getWindow(*compiled, number++, backwards);
    auto result = compiled->apply(kRate, window);
    ASSERT_TRUE(mlir::succeeded(result));
    ASSERT_TRUE(mlir::succeeded(reference->apply(kRate, window)));
    EXPECT_EQ(result->backwards, backwards);
    EXPECT_EQ(countOutside(*compiled, *reference), 0) << backwards;
    for (int64_t rank = 0; rank < text.ranks; ++rank)
      EXPECT_EQ(getBytesInUse(*compiled, rank), before[rank]) << backwards;
  }
}

// A layer that only the second of three backward passes uses, and not on rank
// 1: what is absent counts as zero, bit by bit, whether nothing came before it
// or the backward pass before left something.
TEST_P(MultiBackward, OptionalLayerMayComeAndGo) {
  for (ParameterText &parameter : text.parameters)
    if (parameter.name == "fc1.weight" || parameter.name == "fc1.bias")
      parameter.flags = "optional";
  auto absent = start(GetParam().getWay());
  auto zeros = start(GetParam().getWay());
  auto reference = start({How::logical});
  for (int64_t number = 0; number < 2; ++number) {
    Window window = getWindow(*absent, number, 3);
    Window filled = window;
    for (int64_t rank = 0; rank < text.ranks; ++rank)
      for (int64_t k = 0; k < 3; ++k)
        for (const char *name : {"fc1.weight", "fc1.bias"}) {
          if (k == 1 && rank != 1)
            continue;
          window[rank][k].erase(name);
          filled[rank][k][name].assign(absent->find(name).elements, 0.0);
        }
    ASSERT_TRUE(mlir::succeeded(absent->apply(kRate, window)));
    ASSERT_TRUE(mlir::succeeded(zeros->apply(kRate, filled)));
    ASSERT_TRUE(mlir::succeeded(reference->apply(kRate, window)));
    EXPECT_EQ(countOutside(*absent, *reference), 0);
    for (const ParameterText &parameter : text.parameters)
      EXPECT_EQ(absent->get(parameter.name), zeros->get(parameter.name))
          << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Seeds, MultiBackward,
    testing::Values(
        Configuration{1, 1}, Configuration{1, 2}, Configuration{2, 1},
        Configuration{2, 2}, Configuration{4, 1}, Configuration{4, 2},
        Configuration{1, 1, kOffload}, Configuration{1, 2, kOffload},
        Configuration{2, 1, kOffload}, Configuration{2, 2, kOffload},
        Configuration{4, 1, kOffload}, Configuration{4, 2, kOffload}),
    nameOfConfiguration);
