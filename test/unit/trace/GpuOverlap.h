//===- GpuOverlap.h - What goes on while ranks are together -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stream is held, as by ranks that are slow: what does not need it must be
// done all the same.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_TRACE_GPUOVERLAP_H
#define ZERO_TEST_UNIT_TRACE_GPUOVERLAP_H

#include "CallerDriver.h"
#include "GpuRank.h"
#include "zero_rt/step.h"

#include <set>

namespace zero::test {

/// One rank, whose collectives run on a stream as those of more do.
class GpuOverlap : public GpuTest {
protected:
  void open(int stage, const std::string &offload = "none",
            const std::string &unitOrder = "calls") {
    LowerOptions options;
    options.mesh = "dp=1";
    options.stage = stage;
    options.offload = offload;
    options.unitOrder = unitOrder;
    options.bucketBytes = 1; // one for each parameter
    library.hasUnits = stage == 3;
    GpuTest::open(options);
    ASSERT_EQ(zero_rt_local_group_create(1, &group), ZERO_RT_OK);
    rank = std::make_unique<GpuRank>(library, group, 0);
    ASSERT_EQ(rank->create(), ZERO_RT_OK) << zero_rt_message();
  }
  void TearDown() override {
    fake::holdStream(-1);
    rank.reset();
    GpuTest::TearDown();
  }
  enum Lane { Compute, Together, ToHost, Host, ToDevice };
  /// The number of the stream of |lane|. Waits for all that was queued.
  int64_t findLane(Lane lane) {
    rank->getResults();
    fake::takeCalls();
    rank->getParameter("fc2.bias");
    std::set<int64_t> streams;
    for (const fake::Call &call : fake::takeCalls())
      if (call.function == "cuStreamSynchronize")
        streams.insert(call.stream);
    EXPECT_EQ(streams.size(), 5u); // made in this order
    return *std::next(streams.begin(), lane);
  }
  void apply() {
    double rate = 1;
    rank->check(rank->calls().apply(rank->step, &rate, 1, nullptr));
  }
  zero_rt_status waitForResults() {
    zero_rt_results results = {};
    results.struct_size = sizeof(results);
    return rank->calls().results(rank->step, &results);
  }
  /// Whether what came to |stream| has happened, if it can.
  bool hasPassed(zero_rt_stream *stream) {
    for (int i = 0; i < 1000; ++i)
      (void)cuStreamQuery(stream);
    return cuStreamQuery(stream) == 0;
  }
  void deliver(const std::string &name, zero_rt_timepoint *release) {
    zero_rt_tensor tensor = rank->makeTensor(kGpuElements.at(name), 1);
    rank->check(rank->calls().gradient(rank->step, rank->find(name), &tensor,
                                       nullptr, release));
  }
  void runStep() {
    rank->run(
        {"fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight", "fc1.weight"});
  }

  std::unique_ptr<GpuRank> rank;
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_TRACE_GPUOVERLAP_H
