//===- GpuGraphTest.cpp - Steps as CUDA graphs ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// That bits are the same GpuBitsTest shows. Here it is seen what is in them,
// how often graphs are made, and what comes of failures.
//
//===----------------------------------------------------------------------===//

#include "GpuRank.h"

#include <algorithm>
#include <cmath>

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
    auto made = std::make_unique<GpuRank>(library, group, rank, "cuda",
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
      std::vector<uint16_t> after = rank->getParameter("fc1.bias");
      // The rate of this step, and not of the one that was instantiated.
      EXPECT_EQ(after == before, step == 3);
      before = after;
      EXPECT_EQ(count(calls, "cuGraphLaunch"), 1);
      EXPECT_EQ(count(calls, "cuGraphExecUpdate"), step == 0 ? 0 : 1);
      EXPECT_EQ(count(calls, "cuGraphInstantiate"), step == 0 ? 1 : 0);
      // The norm, what comes of it, and the update.
      EXPECT_EQ(count(calls, "cuGraphAddKernelNode"), 3);
      EXPECT_EQ(count(calls, "cuGraphAddMemsetNode"), 0);
      EXPECT_EQ(count(calls, "cuGraphAddMemcpyNode"), 1);
      EXPECT_EQ(count(calls, "cuLaunchKernel"), 0);
      for (const fake::Call &call : calls)
        EXPECT_FALSE(call.isWait) << call.function;
    }
  });
}

TEST_F(GpuGraph, WithOthersThereAreSeveral) {
  open("dp=2", "optimizer");
  runThreads(2, [&](int r, zero_rt_group *threads) {
    std::unique_ptr<GpuRank> rank = makeRank(library, threads, r);
    for (int step = 0; step < 3; ++step) {
      deliver(*rank);
      rank->check(apply(*rank, 1e-2));
      rank->getResults();
    }
  });
  EXPECT_GT(count(fake::takeCalls(), "cuGraphLaunch"), 2 * 3);
}

TEST_F(GpuGraph, OverNcclGraphsAreMadeOnce) {
  open("dp=2");
  runProcesses(2, [&](int r, zero_rt_group *process) {
    auto rank = std::make_unique<GpuRank>(library, process, r, "cuda",
                                          /*timeoutMs=*/20000, /*gpu=*/r,
                                          /*graphs=*/true);
    rank->check(rank->create());
    for (int step = 0; step < 20; ++step) {
      if (step == 2 && r == 0)
        fake::mark("warm");
      deliver(*rank);
      rank->check(apply(*rank, 1e-2));
      rank->getResults();
    }
  });
  std::vector<fake::Call> calls = fake::takeCalls();
  auto warm =
      std::find_if(calls.begin(), calls.end(), [](const fake::Call &call) {
        return call.function == "warm";
      });
  calls.erase(calls.begin(), warm);
  EXPECT_GT(count(calls, "cuGraphLaunch"), 18);
  // The other rank may still be in its second step.
  EXPECT_LT(count(calls, "cuGraphInstantiate"), 10);
}

TEST_F(GpuGraph, WithoutTheOptionThereIsNone) {
  open("dp=1");
  runThreads(1, [&](int r, zero_rt_group *threads) {
    GpuRank rank(library, threads, r);
    rank.check(rank.create());
    deliver(rank);
    fake::takeCalls();
    rank.check(apply(rank, 1e-2));
    std::vector<fake::Call> calls = fake::takeCalls();
    rank.getResults();
    EXPECT_EQ(count(calls, "cuGraphCreate"), 0);
    // Nor is more launched, of a table and arrivals that are made now.
    std::vector<std::string> launched;
    for (const fake::Call &call : calls)
      if (call.function == "cuLaunchKernel")
        launched.push_back(call.kernel);
    EXPECT_EQ(launched,
              (std::vector<std::string>{"zero_sum_squares$_f32", "zero_scalars",
                                        "zero_update$_adamw$_f32$_bf16"}));
    for (const char *function :
         {"cuMemsetD8Async", "cuMemsetD32Async", "cuMemsetD2D32Async"})
      EXPECT_EQ(count(calls, function), 0) << function;
  });
}

// They come in two launches, in the order in which they were given.
TEST_F(GpuGraph, MoreIsGivenThanALaunchTakes) {
  library.numEchoes = 9;
  open("dp=1");
  runThreads(1, [&](int r, zero_rt_group *threads) {
    std::unique_ptr<GpuRank> rank = makeRank(library, threads, r);
    for (int step = 0; step < 2; ++step) {
      deliver(*rank);
      fake::takeCalls();
      std::vector<double> inputs{1e-2};
      for (int i = 0; i < library.numEchoes; ++i)
        inputs.push_back(step + i / 16.0);
      rank->check(rank->calls().apply(rank->step, inputs.data(),
                                      int32_t(inputs.size()), nullptr));
      // Behind the norm, which reads none of them.
      EXPECT_EQ(count(fake::takeCalls(), "cuGraphAddKernelNode"), 4);
      zero_rt_results results = rank->getResults();
      EXPECT_EQ(results.verdict, ZERO_RT_APPLIED);
      EXPECT_EQ(results.backwards, 1);
      ASSERT_EQ(results.num_values, 1 + library.numEchoes);
      for (int i = 0; i < library.numEchoes; ++i)
        EXPECT_EQ(results.values[1 + i], step + i / 16.0);
    }
  });
}

// The host knows which input it is, and all ranks learn it behind the step. The
// other input is but a result.
TEST_F(GpuGraph, AnInputThatIsNotFiniteRefusesTheStepOfAllRanks) {
  library.numEchoes = 1;
  open("dp=2");
  runThreads(2, [&](int r, zero_rt_group *threads) {
    std::unique_ptr<GpuRank> rank = makeRank(library, threads, r);
    auto applyInputs = [&](std::vector<double> inputs) {
      deliver(*rank);
      rank->check(rank->calls().apply(rank->step, inputs.data(), 2, nullptr));
    };
    for (double bad : {double(NAN), double(INFINITY)}) {
      applyInputs({1e-2, NAN});
      zero_rt_results results = rank->getResults();
      EXPECT_EQ(results.verdict, ZERO_RT_APPLIED);
      EXPECT_TRUE(std::isnan(results.values[1]));
      std::vector<uint16_t> before = rank->getParameter("fc1.bias");

      applyInputs({r == 1 ? bad : 1e-2, 1});
      EXPECT_EQ(rank->calls().results(rank->step, &results),
                ZERO_RT_INVALID_ARGUMENT);
      EXPECT_EQ(std::string(zero_rt_message()),
                "step refused: input 0 ('lr') of apply is " +
                    std::string(std::isnan(bad) ? "nan" : "inf") +
                    " on rank 1; pass finite numbers");
      EXPECT_EQ(results.verdict, ZERO_RT_REFUSED_INPUT);
      EXPECT_EQ(rank->getParameter("fc1.bias"), before);

      applyInputs({1e-2, 1});
      EXPECT_EQ(rank->getResults().verdict, ZERO_RT_APPLIED);
      EXPECT_NE(rank->getParameter("fc1.bias"), before);
    }
  });
}

TEST_F(GpuGraph, AFailureIsThatOfTheStepAlone) {
  open("dp=1");
  for (const char *function :
       {"cuGraphCreate", "cuGraphAddKernelNode", "cuGraphAddMemcpyNode",
        "cuGraphInstantiate", "cuGraphLaunch"})
    for (int at = 1; at <= 2; ++at) {
      SCOPED_TRACE(function + std::to_string(at));
      runThreads(1, [&](int r, zero_rt_group *threads) {
        std::unique_ptr<GpuRank> rank = makeRank(library, threads, r);
        deliver(*rank);
        fake::failCall(function, 719, at);
        zero_rt_status status = apply(*rank, 1e-2);
        std::string message = zero_rt_message();
        if (status == ZERO_RT_OK) {
          // There is but one graph, and one copy.
          EXPECT_EQ(at, 2);
          EXPECT_STRNE(function, "cuGraphAddKernelNode");
          fake::failCall(function, 0, 1);
          return;
        }
        EXPECT_EQ(status, ZERO_RT_DEVICE_FAILED) << message;
        EXPECT_NE(message.find(function), std::string::npos) << message;
        EXPECT_EQ(apply(*rank, 1e-2), ZERO_RT_POISONED) << zero_rt_message();
        // The device is as good as before.
        rank->destroyStep();
        rank->check(rank->create());
        deliver(*rank);
        rank->check(apply(*rank, 1e-2));
        EXPECT_EQ(rank->getResults().verdict, ZERO_RT_APPLIED);
      });
    }
}
