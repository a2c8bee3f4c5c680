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
#include "comm/process/control_messages.h"
#include "comm/process/segment.h"
#include "core/runtime.h"
#include "device/host/host_program.h"

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
  refuses(&bad, "transport->ranks is 0, expected 1 to 1048576");
  bad.ranks = INT32_MAX;
  refuses(&bad, "transport->ranks is 2147483647, expected 1 to 1048576");
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
               "process group still has 1 runtime; destroy it first");
  expectOk(zero_rt_destroy(runtime));
  expectOk(zero_rt_group_destroy(group));
}

TEST(Transport, GivesTheBitsOfSumsInOrder) {
  for (int32_t ranks : {1, 2, 3, 5}) {
    Cluster cluster(ranks);
    cluster.run([&](int32_t rank) {
      Communicator &end = *cluster.runtimes[size_t(rank)]->get()->communicator;
      checkCollectives(end, rank, ranks);
      // From then on ranks read each other's memory.
      expectOk(end.joinStep(1));
      checkCollectives(end, rank, ranks);
    });
  }
}

// And so does a group of threads.
TEST(Transport, GivesTheBitsOfThreads) {
  runRanks(3, [&](int32_t rank, zero_rt_runtime *runtime) {
    checkCollectives(*runtime->get()->communicator, rank, 3);
  });
}

/// This rank's end of a group of |members|.
std::unique_ptr<Communicator> join(Cluster &cluster, int32_t rank,
                                   const std::vector<int32_t> &members) {
  std::unique_ptr<Communicator> end;
  expectOk(cluster.runtimes[size_t(rank)]->get()->communicator->split(
      1, members, end));
  return end;
}

// Rows, columns and all of a 2 x 2 mesh, and groups of other sizes.
TEST(Transport, SplitsIntoGroups) {
  Cluster mesh(4);
  mesh.run([&](int32_t rank) {
    expectOk(mesh.runtimes[size_t(rank)]->get()->communicator->joinStep(1));
    int32_t row = rank / 2 * 2, column = rank % 2;
    std::unique_ptr<Communicator> rows = join(mesh, rank, {row, row + 1});
    std::unique_ptr<Communicator> columns =
        join(mesh, rank, {column, column + 2});
    for (int i = 0; i < 3; ++i) {
      checkCollectives(*rows, column, 2);
      checkCollectives(*columns, rank / 2, 2);
      checkCollectives(*mesh.runtimes[size_t(rank)]->get()->communicator, rank,
                       4);
    }
  });
  Cluster odd(5);
  odd.run([&](int32_t rank) {
    expectOk(odd.runtimes[size_t(rank)]->get()->communicator->joinStep(1));
    std::vector<int32_t> members = {0, 2, 4};
    if (rank % 2)
      members = {1, 3};
    checkCollectives(*join(odd, rank, members), rank / 2,
                     int32_t(members.size()));
  });
}

// Two groups that have two ranks in common, which they enter in opposite order.
TEST(Transport, TellsGroupsApart) {
  Cluster cluster(3, /*timeoutMs=*/2000);
  cluster.run([&](int32_t rank) {
    if (rank == 2)
      return;
    std::unique_ptr<Communicator> two = join(cluster, rank, {0, 1});
    std::unique_ptr<Communicator> three = join(cluster, rank, {0, 1, 2});
    Tag tag = {"all_gather", "b", 0, ZERO_RT_F32, ZERO_RT_F32, 1};
    expectStatus(ZERO_RT_MISMATCH,
                 (rank ? two : three)->allGather(tag, nullptr),
                 "are in all_gather of 'b' of different groups");
  });
}

// Names that are alike as far as they are told.
TEST(Transport, ComparesWholeNames) {
  std::string name(200, 'x');
  Cluster cluster(2);
  cluster.run([&](int32_t rank) {
    std::string mine = name + (rank ? "a" : "b");
    Tag tag = {"all_gather", mine.c_str(), 0, ZERO_RT_F32, ZERO_RT_F32, 0};
    expectStatus(ZERO_RT_MISMATCH,
                 cluster.runtimes[size_t(rank)]->get()->communicator->allGather(
                     tag, nullptr),
                 "names differ");
  });
}

// What fails in a group of some is told to all: who failed comes nowhere else.
TEST(Transport, AFailureIsToldToAll) {
  Cluster cluster(3);
  auto begin = std::chrono::steady_clock::now();
  cluster.run([&](int32_t rank) {
    std::string name = "b" + std::to_string(rank);
    Tag tag = {"all_gather", name.c_str(), 0, ZERO_RT_F32, ZERO_RT_F32, 1};
    if (rank < 2)
      expectStatus(ZERO_RT_MISMATCH,
                   join(cluster, rank, {0, 1})->allGather(tag, nullptr),
                   "rank 0 is in all_gather of 'b0', rank 1 in all_gather of");
    else
      expectStatus(
          ZERO_RT_MISMATCH,
          cluster.runtimes[2]->get()->communicator->allGather(tag, nullptr),
          "rank 0 is in all_gather of 'b0', rank 1 in all_gather of");
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

// A name is on its way when its step, and its memory, are gone.
TEST(Transport, AMessageOutlivesItsStep) {
  Cluster cluster(2, /*timeoutMs=*/100);
  Gate sent;
  std::vector<char> data(100000, 7), got(data.size());
  MessageName name;
  name.step = 1;
  cluster.run([&](int32_t rank) {
    Runtime &runtime = *cluster.runtimes[size_t(rank)]->get();
    if (rank == 0) {
      Message message;
      message.data = data.data();
      message.bytes = int64_t(data.size());
      expectOk(runtime.messenger->send(1, name, message));
      runtime.communicator->leaveStep(1);
      runtime.messenger->declareEnd(1);
      runtime.messenger->leaveStep(1);
      std::fill(data.begin(), data.end(), 9);
      sent.open();
    }
    if (rank == 1) {
      sent.wait();
      expectOk(runtime.messenger->receive(0, name, got.data(),
                                          int64_t(got.size()), "the name"));
      EXPECT_EQ(got, std::vector<char>(got.size(), 7));
      expectStatus(
          ZERO_RT_TIMEOUT,
          runtime.messenger->receive(0, name, got.data(), 1, "another"),
          "another will not come: rank 0 destroyed its step");
      runtime.communicator->leaveStep(1);
      runtime.messenger->declareEnd(1);
      runtime.messenger->leaveStep(1);
    }
  });
}

// Wherever the network breaks down, a call says so, the others give up, and the
// step can only be destroyed.
TEST(Transport, FailuresAreStatuses) {
  LibraryBuilder builder = makeTrainStep(2);
  const zero_rt_library &library = builder.get();
  for (int64_t messages : {0, 1, 2, 3, 5, 8}) {
    Cluster cluster(2, /*timeoutMs=*/300);
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
        expectStatus(ZERO_RT_TIMEOUT, status, "rank 1 did not come");
      if (step)
        expectOk(callsOf(step).step_destroy(step));
    });
    EXPECT_TRUE(isStuck[0] && isStuck[1]) << messages;
  }
}

/// What all ranks send in |collective|, given a rank's communicator.
Network::Traffic
countMessages(Cluster &cluster,
              const std::function<void(Communicator &)> &collective) {
  Network::Traffic before = cluster.network->traffic();
  cluster.run([&](int32_t rank) {
    collective(*cluster.runtimes[size_t(rank)]->get()->communicator);
  });
  Network::Traffic after = cluster.network->traffic();
  return {after.messages - before.messages, after.bytes - before.bytes};
}

// No message comes before the tag, and short payload is in its message.
TEST(Transport, ATagPrecedesThePayload) {
  for (int32_t ranks : {2, 4, 8}) {
    SCOPED_TRACE(ranks);
    Cluster cluster(ranks);
    zero_rt_library library = {};
    ThreadPool pool(1);
    int64_t pairs = int64_t(ranks) * (ranks - 1);
    auto expectTraffic = [&](int64_t elements, bool isSum, int64_t messages,
                             int64_t bytes) {
      Tag tag = {"test", "b", elements, ZERO_RT_F32, ZERO_RT_F32, 0};
      Network::Traffic traffic = countMessages(cluster, [&](Communicator &end) {
        HostProgram program(library, nullptr, pool);
        void *data = end.segment()->allocate(elements * 4);
        std::memset(data, 0, size_t(elements * 4));
        expectOk(isSum ? end.allReduce(tag, program, data, data)
                       : end.allGather(tag, data));
        end.segment()->release(data);
      });
      EXPECT_EQ(traffic.messages, messages * pairs);
      EXPECT_EQ(traffic.bytes, bytes * pairs);
    };
    constexpr int64_t tag = 128, large = 65536;
    expectTraffic(1, /*isSum=*/true, 1, tag);
    expectTraffic(16, /*isSum=*/true, 1, tag);
    expectTraffic(200, /*isSum=*/true, 2, tag + 800);
    expectTraffic(large, /*isSum=*/false, 2, tag + large * 4 / ranks);
    expectTraffic(large, /*isSum=*/true, 3, tag + 2 * large * 4 / ranks);
    // From then on ranks read each other's memory, and send a mark.
    cluster.run([&](int32_t rank) {
      expectOk(
          cluster.runtimes[size_t(rank)]->get()->communicator->joinStep(1));
    });
    expectTraffic(large, /*isSum=*/false, 2, tag + 1);
    expectTraffic(large, /*isSum=*/true, 3, tag + 2);
  }
}

// A second runtime on the same groups, after the first ones are gone.
TEST(Transport, RuntimesMayFollowEachOther) {
  Cluster cluster(3);
  for (int i = 0; i < 3; ++i) {
    cluster.run([&](int32_t rank) {
      checkCollectives(*cluster.runtimes[size_t(rank)]->get()->communicator,
                       rank, 3);
      expectOk(zero_rt_destroy(cluster.runtimes[size_t(rank)]));
      expectOk(zero_rt_create(cluster.groups[size_t(rank)], rank, nullptr,
                              &cluster.runtimes[size_t(rank)]));
    });
  }
}

} // namespace
