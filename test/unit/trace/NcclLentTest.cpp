//===- NcclLentTest.cpp - Communicators of the caller's -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallerDriver.h"
#include "FakeNccl.h"
#include "GpuRank.h"

#include <algorithm>
#include <mutex>
#include <vector>

using namespace zero;
using namespace zero::test;

namespace {

struct UniqueId {
  char bytes[128];
};
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};

} // namespace

extern "C" {
int ncclGetUniqueId(UniqueId *);
int ncclCommInitRankConfig(void **, int, UniqueId, int, Config *);
int ncclCommFinalize(void *);
int ncclCommDestroy(void *);
int ncclCommAbort(void *);
}

namespace {

/// Communicators that a test was told to give up, each time.
std::mutex mutex;
std::vector<void *> givenUp;

class NcclLent : public GpuTest {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    givenUp.clear();
    ncclGetUniqueId(&id);
  }
  void openOn(const std::string &mesh) {
    LowerOptions options;
    options.mesh = mesh;
    options.stage = 1;
    open(options);
  }
  /// The caller's communicator of |rank| on GPU |gpu|.
  void *makeComm(int rank, int ranks, int gpu) {
    void *comm = nullptr;
    Config config;
    cuCtxPushCurrent_v2(fake::contextOf(gpu));
    EXPECT_EQ(ncclCommInitRankConfig(&comm, ranks, id, rank, &config),
              7 /*in progress*/);
    cuCtxPopCurrent_v2(nullptr);
    return comm;
  }
  static void dropComm(void *comm) {
    EXPECT_EQ(ncclCommFinalize(comm), 0);
    EXPECT_EQ(ncclCommDestroy(comm), 0);
  }
  static zero_rt_options makeOptions(int gpu, void *comm) {
    zero_rt_options options = {};
    options.struct_size = sizeof(options);
    options.device = "cuda";
    options.ordinal = gpu;
    options.communicator = comm;
    options.communicator_name = gpu ? "nccl" : nullptr; // the same
    options.give_up = [](void *given) {
      {
        std::lock_guard<std::mutex> lock(mutex);
        givenUp.push_back(given);
      }
      ncclCommAbort(given);
    };
    return options;
  }
  static void runStep(GpuRank &rank) {
    rank.run(
        {"fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight", "fc1.weight"});
    EXPECT_EQ(rank.getResults().verdict, ZERO_RT_APPLIED);
  }
  static int64_t count(const std::string &function) {
    std::vector<fake::Call> calls = fake::takeCalls();
    return std::count_if(
        calls.begin(), calls.end(),
        [&](const fake::Call &call) { return call.function == function; });
  }
  /// Makes the runtime of a rank that lends a communicator like this.
  void expectNoRuntime(int ranks, int number, int gpu,
                       const std::string &text) {
    ncclGetUniqueId(&id);
    runProcesses(2, [&](int r, zero_rt_group *process) {
      if (r != 1)
        return;
      void *comm = makeComm(number, ranks, gpu);
      zero_rt_options options = makeOptions(1, comm);
      zero_rt_runtime *runtime = nullptr;
      EXPECT_EQ(zero_rt_create(process, r, &options, &runtime),
                ZERO_RT_INVALID_ARGUMENT);
      EXPECT_NE(std::string(zero_rt_message()).find(text), std::string::npos)
          << zero_rt_message();
      ncclCommAbort(comm);
    });
  }

  UniqueId id = {};
};

} // namespace

// It is that of all ranks. Gradients are summed over some, which have their
// own.
TEST_F(NcclLent, GroupsOfSomeRanksHaveTheirOwn) {
  library.isReplicated = true;
  openOn("dp=2:tp=2");
  runProcesses(4, [&](int r, zero_rt_group *process) {
    void *comm = makeComm(r, 4, r);
    {
      GpuRank rank(library, process, r, makeOptions(r, comm));
      rank.check(rank.create());
      runStep(rank);
      runStep(rank);
    }
    dropComm(comm);
  });
  // The test's, and those of each rank over dp and over tp.
  EXPECT_EQ(count("ncclCommInitRankConfig"), 4 + 2 * 4);
  EXPECT_TRUE(givenUp.empty());
}

TEST_F(NcclLent, IsUsedAndLeftToItsOwner) {
  openOn("dp=2");
  runProcesses(2, [&](int r, zero_rt_group *process) {
    void *comm = makeComm(r, 2, r);
    // One runtime after the other, and one step after the other.
    for (int runtime = 0; runtime < 2; ++runtime) {
      GpuRank rank(library, process, r, makeOptions(r, comm));
      for (int step = 0; step < 2; ++step) {
        rank.check(rank.create());
        runStep(rank);
        runStep(rank);
        rank.destroyStep();
      }
    }
    dropComm(comm);
  });
  // Those of the test.
  EXPECT_EQ(count("ncclCommInitRankConfig"), 2);
  EXPECT_TRUE(givenUp.empty());
}

TEST_F(NcclLent, IsThatOfTheRank) {
  openOn("dp=2");
  fake::setGpus(3, 9, 0);
  expectNoRuntime(
      3, 1, 1,
      "options->communicator is rank 1 of 3 on GPU 1, expected rank 1 of 2 "
      "on GPU 1");
  expectNoRuntime(2, 0, 1, "options->communicator is rank 0 of 2 on GPU 1");
  expectNoRuntime(2, 1, 0, "options->communicator is rank 1 of 2 on GPU 0");
}

TEST_F(NcclLent, IsForProcessesWithGpus) {
  runThreads(1, [&](int r, zero_rt_group *threads) {
    zero_rt_options options = makeOptions(0, &options);
    zero_rt_runtime *runtime = nullptr;
    EXPECT_EQ(zero_rt_create(threads, r, &options, &runtime),
              ZERO_RT_INVALID_ARGUMENT);
    EXPECT_STREQ(zero_rt_message(),
                 "options->communicator is for ranks that are processes");
    options.communicator_name = "mpi";
    EXPECT_EQ(zero_rt_create(threads, r, &options, &runtime),
              ZERO_RT_INVALID_ARGUMENT);
    EXPECT_STREQ(zero_rt_message(),
                 "options->communicator_name is 'mpi', expected 'nccl' for "
                 "device 'cuda'");
    options.device = "host";
    EXPECT_EQ(zero_rt_create(threads, r, &options, &runtime),
              ZERO_RT_INVALID_ARGUMENT);
    EXPECT_STREQ(zero_rt_message(), "device 'host' takes no communicator; "
                                    "leave options->communicator null");
  });
}

TEST_F(NcclLent, AllRanksLendOrNone) {
  openOn("dp=2");
  runProcesses(2, [&](int r, zero_rt_group *process) {
    void *comm = r == 1 ? makeComm(1, 2, 1) : nullptr;
    {
      GpuRank rank(library, process, r, makeOptions(r, comm));
      EXPECT_EQ(rank.create(), ZERO_RT_MISMATCH);
      EXPECT_STREQ(
          zero_rt_message(),
          "rank 1 lends a communicator in options->communicator, and rank 0 "
          "does not; all ranks do, or none");
    }
    if (comm)
      ncclCommAbort(comm);
  });
  EXPECT_TRUE(givenUp.empty());
}

TEST_F(NcclLent, IsGivenUpOnceWhereARankFails) {
  openOn("dp=2");
  void *comms[2];
  runProcesses(2, [&](int r, zero_rt_group *process) {
    comms[r] = makeComm(r, 2, r);
    GpuRank rank(library, process, r, makeOptions(r, comms[r]));
    rank.check(rank.create());
    runStep(rank);
    if (r == 0) {
      rank.destroyStep(); // and rank 1 goes on
      return;
    }
    rank.check(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN));
    double rate = 1;
    zero_rt_status status = rank.calls().apply(rank.step, &rate, 1, nullptr);
    zero_rt_results results = {};
    results.struct_size = sizeof(results);
    if (!status)
      status = rank.calls().results(rank.step, &results);
    EXPECT_NE(status, ZERO_RT_OK);
  });
  std::lock_guard<std::mutex> lock(mutex);
  EXPECT_EQ(std::count(givenUp.begin(), givenUp.end(), comms[1]), 1);
  // Rank 0 may have been gone before.
  auto numOfFirst = std::count(givenUp.begin(), givenUp.end(), comms[0]);
  EXPECT_LE(numOfFirst, 1);
  if (numOfFirst == 0)
    dropComm(comms[0]);
}
