//===- ProbeTest.cpp - The run of report #7985 ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The report's probe: two ranks, two linear layers of width 64 with a GELU
// between, four micro-batches, bf16 gradients in an f32 accumulator. Right
// before the update it compares the reduced buffers of the ranks. SGD with rate
// -1 from 0 makes them visible: a parameter is then the gradient that its owner
// saw, and so is the state.
//
//===----------------------------------------------------------------------===//

#include "Mlp.h"

#include "tools/zero-run/Inputs.h"

#include <cmath>

using namespace zero;
using namespace zero::test;

namespace {

constexpr int64_t kRanks = 2;
constexpr int64_t kBackwards = 4;
using Values = std::vector<double>;

/// One element's contributions, [rank][backward pass].
using Element = std::vector<std::vector<float>>;

class Probe : public testing::TestWithParam<Way> {
protected:
  Probe() {
    text.ranks = kRanks;
    text.weight = "accumulation : -1, dp : -1";
    text.parameters = mlp.listParameters();
  }

  /// The mean as the declared types and the stage give it. Stage 2 reduces
  /// every backward pass and accumulates its slice; below, ranks accumulate and
  /// are reduced once. At stage 0 a hint reduces in place: if another backward
  /// pass follows, rank 0 keeps the sum. The weight 1/8 is exact.
  float expect(const Element &g) const {
    float sums[kRanks] = {}, reduced = 0, total = 0;
    for (int64_t k = 0; k < kBackwards; ++k) {
      reduced += g[0][k] + g[1][k];
      for (int64_t r = 0; r < kRanks; ++r)
        sums[r] += g[r][k];
      total = sums[0] + sums[1];
      if (GetParam().stage == 0 && GetParam().hinted == Hinted::each) {
        sums[0] = total;
        sums[1] = 0;
      }
    }
    return (GetParam().stage >= 2 ? reduced : total) / 8;
  }

  /// The same without rounding: every sum of bf16 is exact in f64.
  static double expectExact(const Element &g) {
    double sum = 0;
    for (const std::vector<float> &backwards : g)
      for (float value : backwards)
        sum += double(value);
    return sum / 8;
  }

  /// What the reported bug leaves on |rank|: the last micro-batch is added
  /// behind the reduction.
  static float expectLeak(const Element &g, int64_t rank) {
    float sum = 0;
    for (int64_t k = 0; k + 1 < kBackwards; ++k)
      sum += g[0][k] + g[1][k];
    return (sum / kRanks + g[rank][kBackwards - 1]) / kBackwards;
  }

  void run(const Window &window, bool exactSums, int64_t bucketBytes);

  Mlp mlp{{64, 64, 64}};
  StepText text;
};

} // namespace

void Probe::run(const Window &window, bool exactSums, int64_t bucketBytes) {
  Way way = GetParam();
  way.bucketBytes = bucketBytes;
  Step step(text, way);
  auto result = step.apply(-1.0, window);
  ASSERT_TRUE(mlir::succeeded(result));
  double squares = 0;
  int64_t elements = 0, leaks = 0;
  for (const ParameterText &parameter : text.parameters) {
    Values expected;
    for (int64_t i = 0; i < parameter.elements; ++i) {
      Element g(kRanks);
      for (int64_t r = 0; r < kRanks; ++r)
        for (const Backward &backward : window[r])
          g[r].push_back(backward.lookup(parameter.name)[i]);
      bool exact = way.how == How::logical || exactSums;
      expected.push_back(exact ? expectExact(g) : expect(g));
      squares += expected.back() * expected.back();
      ++elements;
      leaks += expectLeak(g, 0) != expected.back() &&
               expectLeak(g, 1) != expected.back();
    }
    // Stage 0 gathers nothing: each rank's parameters are its own buffer. From
    // stage 1 on they were gathered, and the state is the joined slices. Both
    // ranks must have the same either way, which is checked by get.
    EXPECT_EQ(step.get(parameter.name), expected) << parameter.name;
    EXPECT_EQ(step.getState("momentum_buffer", parameter.name), expected)
        << parameter.name;
  }
  EXPECT_NEAR(result->values[0], std::sqrt(squares), 1e-12);
  // The gradients tell the bug from the right answer nearly everywhere.
  EXPECT_GT(leaks, elements * 9 / 10);
}

TEST_P(Probe, RealGradients) {
  Window window = mlp.getWindow(mlp.getInitial(), 0, kRanks, kBackwards);
  run(window, /*exactSums=*/false, /*bucketBytes=*/256);
  // One bucket, in which the border between owners cuts a parameter.
  run(window, /*exactSums=*/false, /*bucketBytes=*/1 << 20);
}

TEST_P(Probe, ExactlySummableGradients) {
  Step names(text, {How::logical});
  Inputs inputs(7, GradientKind::exact);
  Window window(kRanks);
  for (int64_t r = 0; r < kRanks; ++r)
    for (int64_t k = 0; k < kBackwards; ++k) {
      Backward &backward = window[r].emplace_back();
      for (auto [i, parameter] : llvm::enumerate(text.parameters))
        backward[parameter.name] =
            inputs.getGradient(i, names.find(parameter.name), /*step=*/0, r,
                               kRanks, k, kBackwards);
    }
  run(window, /*exactSums=*/true, /*bucketBytes=*/256);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Probe, testing::ValuesIn(getWays()), nameOf);
