//===- GpuBatchTest.cpp - Gradients that arrive together on a GPU ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a batch asks of the driver. That it gives the same numbers is tested in
// GpuBitsTest, and that its caller is waited for in GpuStreamTest.
//
//===----------------------------------------------------------------------===//

#include "CallerDriver.h"
#include "GpuRank.h"

#include <algorithm>
#include <map>

using namespace zero;
using namespace zero::test;

namespace {

const std::vector<std::string> kEach = {"fc1.bias", "fc1.weight", "fc2.bias",
                                        "fc2.weight"};
/// fc1.weight is declared with two pieces.
const std::vector<std::string> kAll = {"fc1.bias", "fc1.weight", "fc1.weight",
                                       "fc2.bias", "fc2.weight"};

/// One rank whose caller has a stream.
class GpuBatch : public GpuTest {
protected:
  void openWith(int stage, int64_t bucketBytes) {
    LowerOptions options;
    options.mesh = "dp=1";
    options.stage = stage;
    options.bucketBytes = bucketBytes;
    open(options);
    ASSERT_EQ(zero_rt_local_group_create(1, &group), ZERO_RT_OK);
    rank = std::make_unique<GpuRank>(library, group, 0);
    ASSERT_EQ(rank->create(), ZERO_RT_OK) << zero_rt_message();
    cuCtxPushCurrent_v2(fake::contextOf(0));
    ASSERT_EQ(cuStreamCreate(&stream, 1), 0);
  }
  void TearDown() override {
    if (rank) {
      EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
      cuCtxPopCurrent_v2(nullptr);
      rank.reset();
    }
    GpuTest::TearDown();
  }
  /// Delivers |names| in one call. Returns what it asks of the driver.
  std::vector<std::string> deliver(const std::vector<std::string> &names,
                                   bool lent = true) {
    std::vector<int32_t> parameters;
    std::vector<zero_rt_tensor> tensors;
    for (const std::string &name : names) {
      parameters.push_back(rank->find(name));
      tensors.push_back(rank->makeTensor(kGpuElements.at(name), 0.5));
    }
    releases.assign(tensors.size(), 0);
    (void)fake::takeCalls();
    rank->check(rank->calls().gradients(
        rank->step, parameters.data(), tensors.data(), int64_t(tensors.size()),
        stream, lent ? releases.data() : nullptr));
    std::vector<std::string> asked;
    for (const fake::Call &call : fake::takeCalls())
      if (call.function != "cuEventQuery") // which events are free again
        asked.push_back(call.kernel.empty() ? call.function : call.kernel);
    return asked;
  }
  void begin() {
    rank->check(rank->calls().begin_backward(rank->step, ZERO_RT_HINT_LAST));
  }
  void apply() {
    double rate = 0.125;
    rank->check(rank->calls().apply(rank->step, &rate, 1, stream));
  }
  /// Runs a step that delivers |names| first, so that a later one allocates
  /// nothing for them.
  void warmUp(const std::vector<std::string> &names) {
    begin();
    deliver(names);
    std::vector<std::string> rest = kAll;
    for (const std::string &name : names)
      rest.erase(std::find(rest.begin(), rest.end(), name));
    deliver(rest);
    apply();
  }

  std::unique_ptr<GpuRank> rank;
  zero_rt_stream *stream = nullptr;
  std::vector<zero_rt_timepoint> releases;
};

const std::string kRecord = "cuEventRecord";
const std::string kWait = "cuStreamWaitEvent";
const std::string kCopy = "cuMemcpyAsync"; // of the table
const std::string kStore = "zero$batch_zero_store$_bf16$_f32";

const std::string kPad = "cuMemsetD32Async"; // behind 10 elements of fc2.bias

TEST_F(GpuBatch, IsOneWaitAndOneLaunch) {
  openWith(/*stage=*/1, /*bucketBytes=*/1 << 20);
  warmUp(kEach);
  begin();
  EXPECT_EQ(deliver(kEach), (std::vector<std::string>{kRecord, kWait, kPad,
                                                      kCopy, kStore, kRecord}));
  // All tensors are given back at once.
  EXPECT_NE(releases[0], 0);
  EXPECT_EQ(releases, std::vector<zero_rt_timepoint>(4, releases[0]));
}

TEST_F(GpuBatch, GivesItsTensorsBackToOneStream) {
  openWith(/*stage=*/1, /*bucketBytes=*/1 << 20);
  warmUp(kEach);
  begin();
  EXPECT_EQ(deliver(kEach, /*lent=*/false),
            (std::vector<std::string>{kRecord, kWait, kPad, kCopy, kStore,
                                      kRecord, kWait}));
}

TEST_F(GpuBatch, OfOneGradientHasNoTable) {
  openWith(/*stage=*/1, /*bucketBytes=*/1 << 20);
  warmUp({"fc1.bias"});
  begin();
  EXPECT_EQ(deliver({"fc1.bias"}),
            (std::vector<std::string>{kRecord, kWait, "zero_store$_bf16$_f32",
                                      kRecord}));
}

// It adds to the first, so the first is launched before it.
TEST_F(GpuBatch, ASecondPieceIsAnotherLaunch) {
  openWith(/*stage=*/1, /*bucketBytes=*/1 << 20);
  warmUp({"fc1.bias", "fc1.weight", "fc1.weight"});
  begin();
  EXPECT_EQ(deliver({"fc1.bias", "fc1.weight", "fc1.weight"}),
            (std::vector<std::string>{kRecord, kWait, kCopy, kStore, kRecord,
                                      "zero_add$_bf16$_f32", kRecord}));
}

// At stage 2 a bucket is closed within the call: here that of fc1.weight, which
// has two pieces, or that of all others. The second piece of fc1.weight ends
// what is held back, in the middle of the others.
TEST_F(GpuBatch, EndsWhereABucketIsClosed) {
  openWith(/*stage=*/2, /*bucketBytes=*/4096);
  ASSERT_EQ(library.getLibrary().num_buckets, 2);
  warmUp(kAll);
  std::vector<std::string> reversed(kAll.rbegin(), kAll.rend());
  for (const std::vector<std::string> &names : {kAll, reversed}) {
    begin();
    std::map<std::string, int> launches;
    for (const std::string &call : deliver(names))
      if (call.rfind("zero", 0) == 0)
        ++launches[call];
    EXPECT_EQ(launches, (std::map<std::string, int>{
                            {"zero$batch_zero_store$_bf16$_bf16", 1},
                            {"zero$sum_bf16_f32_1", 1},
                            {"zero_add$_bf16$_f32", 1},
                            {"zero_store$_bf16$_bf16", 1},
                            {"zero_store$_bf16$_f32", 1}}));
    apply();
    rank->getResults();
  }
}

} // namespace
