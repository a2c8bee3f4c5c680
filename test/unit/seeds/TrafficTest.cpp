//===- TrafficTest.cpp - What a step allocates and sends ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

using namespace zero;
using namespace zero::test;

namespace {
class Traffic : public testing::TestWithParam<int> {
protected:
  /// Two ranks, one bucket of 1024 f32.
  Traffic() {
    text.parameters = {{"w", 1024, ""}};
    text.arrival = "f32";
  }
  /// What one step with |backwards| adds to the counters of rank 0.
  zero_rt_counters count(int backwards) {
    Step step(text, Way{How::compiled, GetParam()});
    zero_rt_counters before = *step.getEngine().getCounters(0);
    Backward gradient{{"w", std::vector<double>(1024, 1.0)}};
    std::vector<Backward> window(backwards, gradient);
    EXPECT_TRUE(mlir::succeeded(step.apply(1.0, {window, window})));
    zero_rt_counters after = *step.getEngine().getCounters(0);
    after.all_reduces -= before.all_reduces;
    after.scalar_all_reduces -= before.scalar_all_reduces;
    after.reduce_scatters -= before.reduce_scatters;
    after.all_gathers -= before.all_gathers;
    after.bytes_sent -= before.bytes_sent;
    return after;
  }
  StepText text;
};

constexpr int64_t kBytes = 1024 * 4;
} // namespace

// One backward pass has no accumulator: no byte and no allocation.
TEST_P(Traffic, OneBackwardHasNoAccumulator) {
  zero_rt_counters counters = count(1);
  for (int space : {ZERO_RT_SPACE_DEVICE, ZERO_RT_SPACE_HOST}) {
    EXPECT_EQ(counters.bytes_peak[space][ZERO_RT_ROLE_ACCUMULATOR], 0);
    EXPECT_EQ(counters.allocations[space][ZERO_RT_ROLE_ACCUMULATOR], 0);
  }
}

// Several have one: a bucket, or a slice of it at stage 2; and it goes again.
TEST_P(Traffic, SeveralBackwardsHaveOne) {
  zero_rt_counters counters = count(3);
  const auto &peak = counters.bytes_peak[ZERO_RT_SPACE_DEVICE];
  const auto &now = counters.bytes_now[ZERO_RT_SPACE_DEVICE];
  EXPECT_EQ(peak[ZERO_RT_ROLE_ACCUMULATOR],
            GetParam() == 2 ? kBytes / 2 : kBytes);
  EXPECT_EQ(now[ZERO_RT_ROLE_ACCUMULATOR], 0);
}

// One packed all-reduce of scalars, whatever the stage and the backward passes.
TEST_P(Traffic, OneScalarAllReduce) {
  for (int backwards : {1, 4})
    EXPECT_EQ(count(backwards).scalar_all_reduces, 1) << backwards;
}

// A ring sends (D-1)/D of a bucket for a reduce-scatter and an all-gather,
// twice that for an all-reduce; statistics are 3 scalars at stage 0 (every rank
// has the norm), 4 from stage 1 on.
TEST_P(Traffic, SendsGradientsAndParametersOnce) {
  for (int backwards : {1, 4}) {
    zero_rt_counters counters = count(backwards);
    int stage = GetParam();
    EXPECT_EQ(counters.all_reduces, stage == 0 ? 1 : 0);
    EXPECT_EQ(counters.reduce_scatters,
              stage == 0 ? 0 : (stage == 1 ? 1 : backwards));
    EXPECT_EQ(counters.all_gathers, stage == 0 ? 0 : 1);
    int64_t half = kBytes / 2;
    int64_t gradients = stage == 0   ? 2 * half
                        : stage == 1 ? half
                                     : backwards * half;
    int64_t parameters = stage == 0 ? 0 : half;
    int64_t scalars = 8 * (stage == 0 ? 3 : 4);
    EXPECT_EQ(counters.bytes_sent, gradients + parameters + scalars);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Traffic, testing::Values(0, 1, 2));
