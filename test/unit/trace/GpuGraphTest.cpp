//===- GpuGraphTest.cpp - Steps as CUDA graphs ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// That bits are the same GpuBitsTest shows. Here it is seen what is captured,
// how often graphs are made, and what comes of failures.
//
//===----------------------------------------------------------------------===//

#include "GpuRank.h"

#include <algorithm>

using namespace zero;
using namespace zero::test;

namespace {

class GpuGraph : public GpuTest {
protected:
  void open(const std::string &mesh, const std::string &offload = "none") {
    LowerOptions options;
    options.mesh = mesh;
    options.stage = mesh == "dp=1" ? 0 : 1;
    options.offload = offload;
    GpuTest::open(options);
  }
  static std::unique_ptr<GpuRank> makeRank(StepLibrary &library,
                                           zero_rt_group *group, int rank) {
    auto made =
        std::make_unique<GpuRank>(library, group, rank, ZERO_RT_DEVICE_CUDA,
                                  /*timeoutMs=*/20000, /*gpu=*/0,
                                  /*graphs=*/true);
    made->check(made->create());
    return made;
  }
  static void deliver(GpuRank &rank) {
    rank.check(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN));
    for (const auto &[name, elements] : kGpuElements)
      for (int use = 0; use < (name == "fc1.weight" ? 2 : 1); ++use) {
        zero_rt_tensor tensor = rank.makeTensor(elements, 0.5f);
        rank.check(rank.calls().gradient(rank.step, rank.find(name), &tensor,
                                         nullptr, nullptr));
      }
  }
  static zero_rt_status apply(GpuRank &rank, double rate) {
    return rank.calls().apply(rank.step, &rate, 1, nullptr);
  }
  static int64_t count(const std::vector<fake::Call> &calls,
                       const std::string &function) {
    return std::count_if(
        calls.begin(), calls.end(),
        [&](const fake::Call &call) { return call.function == function; });
  }
};

} // namespace

TEST_F(GpuGraph, ApplyOfOneRankIsOneGraphThatIsUpdated) {
  open("dp=1");
  runThreads(1, [&](int r, zero_rt_group *threads) {
    std::unique_ptr<GpuRank> rank = makeRank(library, threads, r);
    std::vector<uint16_t> before;
    for (int step = 0; step < 4; ++step) {
      deliver(*rank);
      fake::takeCalls();
      rank->check(apply(*rank, step == 3 ? 0.0 : 1e-2 * (step + 1)));
      std::vector<fake::Call> calls = fake::takeCalls();
      rank->getResults();
      if (step == 0)
        continue; // tables are made, for which nothing may be captured
      EXPECT_EQ(count(calls, "cuGraphLaunch"), 1);
      EXPECT_EQ(count(calls, "cuGraphExecUpdate"), 1);
      // The first was cut where tables were made, and a rate of 0 takes one
      // memset less.
      EXPECT_EQ(count(calls, "cuGraphInstantiate"), step == 2 ? 0 : 1);
      EXPECT_EQ(count(calls, "cuGraphExecDestroy"), step == 2 ? 0 : 1);
      // What is captured is not queued.
      EXPECT_GT(count(calls, "cuLaunchKernel"), 2);
      for (const fake::Call &call : calls)
        EXPECT_FALSE(call.isWait) << call.function;
      std::vector<uint16_t> after = rank->getParameter("fc1.bias");
      // The rate of this step, and not of the one that was instantiated.
      EXPECT_EQ(after == before, step == 3);
      before = after;
    }
  });
}

TEST_F(GpuGraph, NothingOfOthersIsCaptured) {
  open("dp=2", "optimizer");
  runThreads(2, [&](int r, zero_rt_group *threads) {
    std::unique_ptr<GpuRank> rank = makeRank(library, threads, r);
    for (int step = 0; step < 3; ++step) {
      deliver(*rank);
      rank->check(apply(*rank, 1e-2));
      rank->getResults();
    }
  });
  // The driver complains about what may not be captured; TearDown looks.
  EXPECT_GT(count(fake::takeCalls(), "cuGraphLaunch"), 0);
}

TEST_F(GpuGraph, WithoutTheOptionThereIsNone) {
  open("dp=1");
  runThreads(1, [&](int r, zero_rt_group *threads) {
    GpuRank rank(library, threads, r);
    rank.check(rank.create());
    deliver(rank);
    rank.check(apply(rank, 1e-2));
    rank.getResults();
  });
  EXPECT_EQ(count(fake::takeCalls(), "cuStreamBeginCapture"), 0);
}

TEST_F(GpuGraph, AFailureEndsTheCaptureAndPoisonsTheStep) {
  open("dp=1");
  for (const char *function :
       {"cuStreamBeginCapture", "cuLaunchKernel", "cuStreamEndCapture",
        "cuGraphInstantiate", "cuGraphLaunch"}) {
    SCOPED_TRACE(function);
    runThreads(1, [&](int r, zero_rt_group *threads) {
      std::unique_ptr<GpuRank> rank = makeRank(library, threads, r);
      deliver(*rank);
      fake::failCall(function, 719);
      EXPECT_EQ(apply(*rank, 1e-2), ZERO_RT_DEVICE_FAILED);
      EXPECT_NE(std::string(zero_rt_message()).find("failed"),
                std::string::npos)
          << zero_rt_message();
      EXPECT_NE(rank->calls().begin_backward(rank->step, 0), ZERO_RT_OK);
    });
  }
}
