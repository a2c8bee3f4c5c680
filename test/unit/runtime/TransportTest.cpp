//===- TransportTest.cpp - Groups over a transport ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All other tests of the runtime run over a transport as well, with
// ZERO_TEST_GROUP=transport. Here is what only such a group has.
//
//===----------------------------------------------------------------------===//

#include "CollectiveBits.h"
#include "Ranks.h"
#include "ThreadTransport.h"
#include "TrainStep.h"
#include "core/runtime.h"

#include <thread>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

/// Groups of ranks on a network that a test can cut.
struct Cluster {
  explicit Cluster(int32_t ranks, int64_t timeoutMs = 20000)
      : network(std::make_shared<Network>()) {
    auto options = sized<zero_rt_options>();
    options.timeout_ms = timeoutMs;
    for (int32_t r = 0; r < ranks; ++r) {
      zero_rt_transport transport = Network::connect(network, r, ranks);
      expectOk(
          zero_rt_transport_group_create(&transport, &groups.emplace_back()));
      expectOk(
          zero_rt_create(groups.back(), r, &options, &runtimes.emplace_back()));
    }
  }
  ~Cluster() {
    for (zero_rt_runtime *runtime : runtimes)
      expectOk(zero_rt_destroy(runtime));
    for (zero_rt_group *group : groups)
      expectOk(zero_rt_group_destroy(group));
  }
  void run(const std::function<void(int32_t)> &body) {
    std::vector<std::thread> threads;
    for (size_t r = 0; r < runtimes.size(); ++r)
      threads.emplace_back([&, r] { body(int32_t(r)); });
    for (std::thread &thread : threads)
      thread.join();
  }

  std::shared_ptr<Network> network;
  std::vector<zero_rt_group *> groups;
  std::vector<zero_rt_runtime *> runtimes;
};

TEST(Transport, RefusesWhatIsIncomplete) {
  zero_rt_group *group = nullptr;
  auto network = std::make_shared<Network>();
  zero_rt_transport good = Network::connect(network, 1, 2);
  auto refuses = [&](const zero_rt_transport *transport, const char *text) {
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 zero_rt_transport_group_create(transport, &group), text);
    EXPECT_EQ(group, nullptr);
  };
  refuses(nullptr, "transport is null");
  zero_rt_transport bad = good;
  bad.struct_size = 8;
  refuses(&bad, "transport->struct_size is 8");
  bad = good;
  bad.rank = 2;
  refuses(&bad, "transport->rank is 2, expected 0 to 1");
  bad.ranks = 0;
  refuses(&bad, "transport->ranks is 0, expected at least 1");
  bad = good;
  bad.test = nullptr;
  refuses(&bad, "transport lacks a function");
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_transport_group_create(&good, nullptr),
               "out_group is null");

  expectOk(zero_rt_transport_group_create(&good, &group));
  zero_rt_runtime *runtime = nullptr, *second = nullptr;
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_create(group, 0, nullptr, &runtime),
               "this process is rank 1 of its group, not 0");
  expectOk(zero_rt_create(group, 1, nullptr, &runtime));
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_create(group, 1, nullptr, &second),
               "rank 1 is already taken");
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_group_destroy(group),
               "group still has 1 runtimes");
  expectOk(zero_rt_destroy(runtime));
  expectOk(zero_rt_group_destroy(group));
}

TEST(Transport, GivesTheBitsOfSumsInOrder) {
  for (int32_t ranks : {1, 2, 3, 5}) {
    Cluster cluster(ranks);
    cluster.run([&](int32_t rank) {
      checkCollectives(*cluster.runtimes[size_t(rank)]->communicator, rank,
                       ranks);
    });
  }
}

// And so does a group of threads.
TEST(Transport, GivesTheBitsOfThreads) {
  runRanks(3, [&](int32_t rank, zero_rt_runtime *runtime) {
    checkCollectives(*runtime->communicator, rank, 3);
  });
}

// Some ranks only, and two such groups at once.
TEST(Transport, SplitsIntoGroups) {
  Cluster cluster(5);
  cluster.run([&](int32_t rank) {
    std::vector<int32_t> members = {0, 2, 4};
    if (rank % 2)
      members = {1, 3};
    std::unique_ptr<Communicator> end;
    expectOk(
        cluster.runtimes[size_t(rank)]->communicator->split(1, members, end));
    checkCollectives(*end, rank / 2, int32_t(members.size()));
  });
}

// Wherever the network breaks down, a call says so, the others give up, and the
// step can only be destroyed.
TEST(Transport, FailuresAreStatuses) {
  LibraryBuilder builder = makeTrainStep(2);
  const zero_rt_library &library = builder.get();
  for (int64_t messages = 0; messages < 12; ++messages) {
    Cluster cluster(2, /*timeoutMs=*/50);
    cluster.network->failAfter(1, messages);
    bool isStuck[2] = {};
    cluster.run([&](int32_t rank) {
      zero_rt_runtime *runtime = cluster.runtimes[size_t(rank)];
      zero_rt_step *step = nullptr;
      zero_rt_status status =
          callsOf(runtime).step_create(runtime, &library, nullptr, &step);
      for (int i = 0; i < 3 && !status; ++i) {
        expectOk(callsOf(step).begin_backward(step, 0));
        passAll(step);
        status = applyStep(step);
      }
      isStuck[rank] = status != ZERO_RT_OK;
      if (rank == 1)
        expectStatus(ZERO_RT_INTERNAL, status, "the network is down");
      else
        EXPECT_TRUE(status == ZERO_RT_TIMEOUT || status == ZERO_RT_INTERNAL)
            << zero_rt_status_name(status) << ": " << zero_rt_message();
      if (step)
        expectOk(callsOf(step).step_destroy(step));
    });
    EXPECT_TRUE(isStuck[0] && isStuck[1]) << messages;
  }
}

// A second runtime on the same groups, after the first ones are gone.
TEST(Transport, RuntimesMayFollowEachOther) {
  Cluster cluster(3);
  for (int i = 0; i < 3; ++i) {
    cluster.run([&](int32_t rank) {
      checkCollectives(*cluster.runtimes[size_t(rank)]->communicator, rank, 3);
      expectOk(zero_rt_destroy(cluster.runtimes[size_t(rank)]));
      expectOk(zero_rt_create(cluster.groups[size_t(rank)], rank, nullptr,
                              &cluster.runtimes[size_t(rank)]));
    });
  }
}

} // namespace
