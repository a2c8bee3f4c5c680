//===- SharedMemoryTest.cpp - Memory of ranks on one machine --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// TransportTest checks the bits of collectives in shared memory.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "ThreadTransport.h"
#include "comm/process/collective_tag.h"
#include "comm/process/link.h"
#include "comm/process/shared_memory.h"
#include "core/runtime.h"
#include "device/host/host_program.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

constexpr int64_t page = Segment::pageBytes;

//===----------------------------------------------------------------------===//
// A segment
//===----------------------------------------------------------------------===//

TEST(SharedMemory, ReusesWhatIsReleased) {
  std::unique_ptr<Segment> segment = Segment::create();
  ASSERT_TRUE(segment);
  void *one = segment->allocate(1);
  void *two = segment->allocate(2 * page);
  void *three = segment->allocate(page + 1);
  EXPECT_EQ(segment->offsetOf(one), page); // behind the head
  EXPECT_EQ(segment->offsetOf(two), 2 * page);
  EXPECT_EQ(segment->offsetOf(three), 4 * page);
  std::memset(three, 7, size_t(page) + 1);
  EXPECT_TRUE(segment->release(one));
  EXPECT_TRUE(segment->release(two));
  EXPECT_EQ(segment->allocate(3 * page), one);
  EXPECT_TRUE(segment->release(three));
  EXPECT_TRUE(segment->release(one));
  EXPECT_EQ(segment->allocate(9 * page), one);
}

TEST(SharedMemory, RefusesWhatIsNoBlock) {
  std::unique_ptr<Segment> segment = Segment::create();
  ASSERT_TRUE(segment);
  auto *block = static_cast<char *>(segment->allocate(page));
  int local = 0;
  EXPECT_FALSE(segment->release(&local));
  EXPECT_FALSE(segment->release(block + 1));
  EXPECT_EQ(segment->offsetOf(&local), -1);
  EXPECT_EQ(segment->offsetOf(block + page + 5), 2 * page + 5);
  EXPECT_FALSE(segment->allocate(INT64_MAX));
  EXPECT_FALSE(segment->allocate(segment->bytes()));
}

// As other memory: the child reads it, and what it writes is its own.
TEST(SharedMemory, AForkedProcessHasACopy) {
  std::unique_ptr<Segment> segment = Segment::create();
  ASSERT_TRUE(segment);
  { // one that is gone is left alone
    std::unique_ptr<Segment> gone = Segment::create();
  }
  auto *block = static_cast<volatile char *>(segment->allocate(page));
  block[3] = 42;
  pid_t child = fork();
  if (child == 0) {
    bool isRead = block[3] == 42;
    block[3] = 7;
    _exit(isRead && block[3] == 7 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(block[3], 42);
}

//===----------------------------------------------------------------------===//
// What ranks announce
//===----------------------------------------------------------------------===//

/// Rank 0 reads, and rank 1 announces.
struct Pair {
  SharedMemory reader{2, Segment::create()};
  SharedMemory owner{2, Segment::create()};
};

// The memory of other ranks is not the child's.
TEST(SharedMemory, AForkedProcessDoesNotHaveThatOfOthers) {
  Pair pair;
  void *block = pair.owner.own()->allocate(page);
  ASSERT_TRUE(pair.reader.attach(1, pair.owner.announce()));
  auto *view = const_cast<void *>(
      pair.reader.find(1, pair.owner.own()->offsetOf(block), page));
  auto isMapped = [&] { return msync(view, size_t(page), MS_ASYNC) == 0; };
  EXPECT_TRUE(isMapped());
  pid_t child = fork();
  if (child == 0)
    _exit(isMapped());
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(SharedMemory, ReadsWhatTheOwnerWrites) {
  Pair pair;
  auto *block = static_cast<char *>(pair.owner.own()->allocate(2 * page));
  int64_t offset = pair.owner.own()->offsetOf(block);
  ASSERT_TRUE(pair.reader.attach(1, pair.owner.announce()));
  EXPECT_TRUE(pair.reader.reads(1));
  EXPECT_EQ(pair.reader.count(), 1);
  block[5] = 42;
  auto *view = static_cast<const char *>(pair.reader.find(1, offset, 2 * page));
  ASSERT_TRUE(view);
  EXPECT_NE(view, block);
  EXPECT_EQ(view[5], 42);
  EXPECT_FALSE(pair.reader.isRevoked(1));
  pair.owner.own()->revoke();
  EXPECT_TRUE(pair.reader.isRevoked(1));
}

TEST(SharedMemory, FindsNothingOutsideOfASegment) {
  Pair pair;
  ASSERT_TRUE(pair.reader.attach(1, pair.owner.announce()));
  int64_t bytes = pair.owner.own()->bytes();
  EXPECT_TRUE(pair.reader.find(1, bytes - page, page));
  EXPECT_FALSE(pair.reader.find(1, bytes - page, page + 1));
  EXPECT_FALSE(pair.reader.find(1, bytes, page));
  EXPECT_FALSE(pair.reader.find(1, page, INT64_MAX));
  EXPECT_FALSE(pair.reader.find(1, INT64_MAX / page * page, page));
  EXPECT_FALSE(pair.reader.find(1, -page, page));
  EXPECT_FALSE(pair.reader.find(1, page, -1));
  EXPECT_FALSE(pair.reader.find(1, page + 2, page)); // not aligned
}

TEST(SharedMemory, RefusesWrongAnnouncements) {
  Pair pair;
  const Announcement good = pair.owner.announce();
  auto refuses = [&](auto change) {
    Announcement bad = good;
    change(bad);
    EXPECT_FALSE(pair.reader.attach(1, bad));
    EXPECT_FALSE(pair.reader.reads(1));
  };
  refuses([](Announcement &bad) { bad = {}; });
  refuses([](Announcement &bad) { bad.nonce[3] ^= 1; });
  refuses([](Announcement &bad) { bad.machine[0] ^= 1; });
  refuses([](Announcement &bad) { bad.bytes += page; });
  refuses([](Announcement &bad) { bad.bytes = 8; });
  refuses([](Announcement &bad) { bad.bytes = -page; });
  refuses([](Announcement &bad) { bad.bytes = INT64_MAX; });
  for (int32_t process : {-1, 0, 1, INT32_MAX})
    refuses([&](Announcement &bad) { bad.process = process; });
  for (int32_t descriptor : {-1, 0, 1 << 30})
    refuses([&](Announcement &bad) { bad.descriptor = descriptor; });
  // Another segment, whose nonce differs.
  std::unique_ptr<Segment> other = Segment::create();
  refuses([&](Announcement &bad) { bad.descriptor = other->descriptor(); });
  // The same file, but its owner can cut it.
  int file = memfd_create("unsealed", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, good.bytes), 0);
  ASSERT_EQ(pwrite(file, &good.nonce, sizeof(good.nonce), 0),
            ssize_t(sizeof(good.nonce)));
  refuses([&](Announcement &bad) { bad.descriptor = file; });
  close(file);
  EXPECT_TRUE(pair.reader.attach(1, good));
}

TEST(SharedMemory, ARankWithoutASegmentTakesNoPart) {
  Pair pair;
  SharedMemory none(2, nullptr);
  EXPECT_EQ(none.announce().bytes, 0);
  EXPECT_FALSE(none.attach(1, pair.owner.announce()));
  EXPECT_FALSE(pair.reader.attach(1, none.announce()));
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Runtimes of |values| that share memory or not, by rank ("1" or "0").
struct Machine {
  explicit Machine(const std::vector<const char *> &values,
                   int64_t timeoutMs = 20000) {
    auto network = std::make_shared<Network>();
    auto options = sized<zero_rt_options>();
    options.timeout_ms = timeoutMs;
    auto ranks = int32_t(values.size());
    for (int32_t r = 0; r < ranks; ++r) {
      setenv("ZERO_RT_SHARED_MEMORY", values[size_t(r)], /*overwrite=*/1);
      zero_rt_transport transport = Network::connect(network, r, ranks);
      expectOk(
          zero_rt_transport_group_create(&transport, &groups.emplace_back()));
      expectOk(
          zero_rt_create(groups.back(), r, &options, &runtimes.emplace_back()));
    }
    unsetenv("ZERO_RT_SHARED_MEMORY");
  }
  ~Machine() {
    for (zero_rt_runtime *runtime : runtimes)
      expectOk(zero_rt_destroy(runtime));
    for (zero_rt_group *group : groups)
      expectOk(zero_rt_group_destroy(group));
  }
  Communicator &end(int32_t rank) {
    return *runtimes[size_t(rank)]->get()->communicator;
  }
  void run(const std::function<void(int32_t)> &body) {
    std::vector<std::thread> threads;
    for (size_t r = 0; r < runtimes.size(); ++r)
      threads.emplace_back([&, r] { body(int32_t(r)); });
    for (std::thread &thread : threads)
      thread.join();
  }

  std::vector<zero_rt_group *> groups;
  std::vector<zero_rt_runtime *> runtimes;
};

constexpr int64_t elements = 4096;

/// A sum that begins late.
class LateProgram final : public HostProgram {
public:
  LateProgram(ThreadPool &pool, std::function<void()> before)
      : HostProgram(library, nullptr, pool), before(std::move(before)) {}
  zero_rt_status sum(const RankSum &sum) override {
    before();
    return HostProgram::sum(sum);
  }

private:
  static inline const zero_rt_library library = {};
  std::function<void()> before;
};

/// A buffer of ones in the segment of |end|.
float *makeOnes(Communicator &end) {
  auto *data = static_cast<float *>(
      end.segment()->allocate(elements * int64_t(sizeof(float))));
  std::fill_n(data, elements, 1.0f);
  return data;
}

TEST(SharedMemory, IsDecidedByPairs) {
  Machine machine({"1", "1", "0", "1"});
  machine.run([&](int32_t rank) {
    EXPECT_EQ(countersOf(machine.runtimes[size_t(rank)]).shared_ranks, 0);
    expectOk(machine.end(rank).joinStep(1));
    EXPECT_EQ(countersOf(machine.runtimes[size_t(rank)]).shared_ranks,
              rank == 2 ? 0 : 2);
  });
}

// Its segment is another one then, and the other rank reads that.
TEST(SharedMemory, OneRankMakesItsRuntimeAgain) {
  Machine machine({"1", "1"});
  for (uint64_t round = 1; round <= 3; ++round) {
    machine.run([&](int32_t rank) {
      Communicator &end = machine.end(rank);
      expectOk(end.joinStep(round));
      EXPECT_EQ(end.sharedRanks(), 1);
      ThreadPool pool(1);
      LateProgram program(pool, [] {});
      float *data = makeOnes(end);
      Tag tag = {"test", "b", elements, ZERO_RT_F32, ZERO_RT_F32, round};
      expectOk(end.allReduce(tag, program, data, data));
      EXPECT_EQ(std::vector<float>(data, data + elements),
                std::vector<float>(elements, 2));
      EXPECT_TRUE(end.segment()->release(data));
      end.leaveStep(round);
    });
    expectOk(zero_rt_destroy(machine.runtimes[0]));
    expectOk(
        zero_rt_create(machine.groups[0], 0, nullptr, &machine.runtimes[0]));
  }
}

// A rank reads the buffer of the other one in its segment, and gets a message
// with what is in memory of the caller.
TEST(SharedMemory, SendsWhatIsInMemoryOfTheCaller) {
  auto allocator = sized<zero_rt_allocator>();
  allocator.allocate = [](void *, int32_t, int32_t, int64_t bytes, const char *,
                          zero_rt_stream *) {
    return std::aligned_alloc(64, size_t(bytes));
  };
  allocator.release = [](void *, void *data, zero_rt_stream *) {
    std::free(data);
  };
  Machine machine({"1", "1"});
  machine.runtimes[0]->get()->memory.use(allocator);
  machine.run([&](int32_t rank) {
    Communicator &end = machine.end(rank);
    expectOk(end.joinStep(1));
    EXPECT_EQ(end.sharedRanks(), 1);
    Memory &memory = machine.runtimes[size_t(rank)]->get()->memory;
    Block block;
    expectOk(memory.allocate(ZERO_RT_SPACE_DEVICE, ZERO_RT_ROLE_GRADIENT,
                             elements * int64_t(sizeof(float)), "b", block));
    EXPECT_EQ(block.isCallers, rank == 0);
    auto *data = static_cast<float *>(block.data);
    std::fill_n(data, elements, 1.0f);
    ThreadPool pool(1);
    LateProgram program(pool, [] {});
    Tag tag = {"test", "b", elements, ZERO_RT_F32, ZERO_RT_F32, 1};
    expectOk(end.allReduce(tag, program, data, data));
    EXPECT_EQ(std::vector<float>(data, data + elements),
              std::vector<float>(elements, 2));
    memory.release(block);
    end.leaveStep(1);
  });
}

TEST(SharedMemory, RefusesAnUnknownSetting) {
  auto network = std::make_shared<Network>();
  zero_rt_transport transport = Network::connect(network, 0, 1);
  zero_rt_group *group = nullptr;
  zero_rt_runtime *runtime = nullptr;
  expectOk(zero_rt_transport_group_create(&transport, &group));
  setenv("ZERO_RT_SHARED_MEMORY", "off", /*overwrite=*/1);
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_create(group, 0, nullptr, &runtime),
               "ZERO_RT_SHARED_MEMORY is 'off', expected 0 or 1");
  unsetenv("ZERO_RT_SHARED_MEMORY");
  expectOk(zero_rt_group_destroy(group));
}

// Rank 0 begins to sum when rank 1 has long been done.
TEST(SharedMemory, ARankWaitsForThoseWhoRead) {
  Machine machine({"1", "1"});
  Tag tag = {"test", "b", elements, ZERO_RT_F32, ZERO_RT_F32, 1};
  std::atomic<bool> hasLeft{false};
  machine.run([&](int32_t rank) {
    Communicator &end = machine.end(rank);
    expectOk(end.joinStep(1));
    ThreadPool pool(1);
    LateProgram program(pool, [&] {
      if (rank == 1)
        return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_FALSE(hasLeft);
    });
    float *data = makeOnes(end);
    std::vector<float> slice(elements / 2);
    expectOk(end.reduceScatter(tag, program, data, slice.data(),
                               /*accumulate=*/false));
    hasLeft = rank == 1;
    std::fill_n(data, elements, float(1 + rank));
    EXPECT_EQ(slice, std::vector<float>(slice.size(), 2));
    Tag barrier = {"barrier", nullptr, 0, ZERO_RT_F64, ZERO_RT_F64, 0};
    char mine = 0, all[2];
    expectOk(end.exchange(barrier, &mine, all, 1));
    hasLeft = false;
    expectOk(end.exchange(barrier, &mine, all, 1));
    expectOk(end.allReduce(tag, program, data, data));
    hasLeft = rank == 1;
    EXPECT_EQ(std::vector<float>(data, data + elements),
              std::vector<float>(elements, 3));
  });
}

// Rank 1 gives up while rank 0 sums, and its caller writes to the buffer.
TEST(SharedMemory, WhatWasReadTooLateIsNoResult) {
  Machine machine({"1", "1"}, /*timeoutMs=*/300);
  Tag tag = {"reduce_scatter", "b", elements, ZERO_RT_F32, ZERO_RT_F32, 1};
  Gate hasGivenUp;
  machine.run([&](int32_t rank) {
    Communicator &end = machine.end(rank);
    expectOk(end.joinStep(1));
    ThreadPool pool(1);
    LateProgram program(pool, [&] {
      if (rank == 0)
        hasGivenUp.wait();
    });
    float *data = makeOnes(end);
    std::vector<float> slice(elements / 2);
    zero_rt_status status = end.reduceScatter(tag, program, data, slice.data(),
                                              /*accumulate=*/false);
    if (rank == 1)
      std::fill_n(data, elements, -1.0f);
    expectStatus(ZERO_RT_TIMEOUT, status,
                 "reduce_scatter of 'b' did not finish within 300 ms: rank 0 "
                 "did not come");
    if (rank == 1)
      hasGivenUp.open();
  });
}

/// Expects |text| of rank 0 in an all-gather when rank 1 says that its buffer
/// is at |offset|.
void expectOffsetRefused(int64_t offset, const char *text) {
  auto network = std::make_shared<Network>();
  zero_rt_transport mine = Network::connect(network, 0, 2);
  zero_rt_transport liar = Network::connect(network, 1, 2);
  zero_rt_group *group = nullptr;
  zero_rt_runtime *runtime = nullptr;
  expectOk(zero_rt_transport_group_create(&mine, &group));
  expectOk(zero_rt_create(group, 0, nullptr, &runtime));
  std::vector<void *> requests;
  auto send = [&](const void *data, size_t bytes) {
    expectOk(liar.send(liar.context, 0, CollectiveChannel, data, int64_t(bytes),
                       &requests.emplace_back()));
  };
  SharedMemory memory(2, Segment::create());
  Announcement announcement = memory.announce();
  uint64_t number = numberOf({0, 1}, 0);
  Tag share = {"share_memory", nullptr, 0, ZERO_RT_F64, ZERO_RT_F64, 0};
  Tag gather = {"all_gather", "b", elements, ZERO_RT_F32, ZERO_RT_F32, 1};
  TagMessage messages[3];
  messages[0].tag = makeTag(share, number, 1);
  messages[1].tag = makeTag(share, number, 2);
  messages[1].tag.bytes = 1;
  messages[1].payload[0] = 1; // reads the memory of the other
  messages[2].tag = makeTag(gather, number, 3);
  messages[2].tag.source = offset;
  send(&messages[0], sizeof(TagMessage));
  send(&announcement, sizeof(announcement));
  send(&messages[1], sizeof(TagMessage));
  send(&messages[2], sizeof(TagMessage));
  expectOk(runtime->get()->communicator->joinStep(1));
  EXPECT_EQ(countersOf(runtime).shared_ranks, 1);
  std::vector<float> data(elements);
  expectStatus(ZERO_RT_MISMATCH,
               runtime->get()->communicator->allGather(gather, data.data()),
               text);
  expectOk(zero_rt_destroy(runtime));
  expectOk(zero_rt_group_destroy(group));
  for (void *request : requests)
    liar.cancel(liar.context, request);
  liar.destroy(liar.context);
}

TEST(SharedMemory, RefusesBuffersOutsideOfASegment) {
  int64_t bytes = Segment::create()->bytes();
  for (int64_t offset :
       {bytes - page, bytes, INT64_MAX / page * page, int64_t(1)})
    expectOffsetRefused(offset,
                        "rank 1 named a buffer for all_gather of 'b' that is "
                        "not in its segment");
}

} // namespace
