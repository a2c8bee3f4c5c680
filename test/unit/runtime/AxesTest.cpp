//===- AxesTest.cpp - Collectives over some axes of a mesh ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibraryBuilder.h"
#include "Ranks.h"

#include "core/localize.h"
#include "core/step.h"

#include "gtest/gtest.h"

#include <atomic>
#include <cmath>
#include <thread>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

enum Buffers { Undivided, OverB, OverAC };
enum Sets { B, AC, ABC, A };
constexpr int64_t kElements = 12;

/// A mesh of 2 x 3 x 2 ranks over a, b and c, c the fastest.
LibraryBuilder makeMesh() {
  LibraryBuilder library(12);
  library.axes = {{library.addText("a"), 2},
                  {library.addText("b"), 3},
                  {library.addText("c"), 2}};
  library.axisSets = {0b010, 0b101, 0b111, 0b001};
  library.addBuffer({"full", ZERO_RT_F64, kElements});
  library.addBuffer({"over_b", ZERO_RT_F64, kElements, true});
  library.addBuffer({"over_ac", ZERO_RT_F64, kElements, true});
  library.buffers[OverB].owners = B;
  library.buffers[OverAC].owners = AC;
  library.addSlot("first");
  library.addSlot("second");
  library.addProtocolState("idle");
  return library;
}

double *dataOf(zero_rt_step *step, int32_t buffer) {
  return static_cast<double *>(step->get()->buffers[size_t(buffer)].data);
}

/// Element |i| of |rank|: sums of these tell every rank apart.
double valueOf(int32_t rank, int64_t i) {
  return double(1 << rank) + double(i) * 65536;
}

void fillFull(zero_rt_step *step, int32_t rank) {
  for (int64_t i = 0; i < kElements; ++i)
    dataOf(step, Undivided)[i] = valueOf(rank, i);
}

double sumOf(const std::vector<int32_t> &ranks, int64_t i) {
  double sum = 0;
  for (int32_t rank : ranks)
    sum += valueOf(rank, i);
  return sum;
}

} // namespace

TEST(Axes, GroupsAreTheRanksThatDifferOverThem) {
  LibraryBuilder library = makeMesh();
  auto group = [&](int64_t axes, int32_t rank) {
    return groupOf(library.get(), axes, rank);
  };
  using Ranks = std::vector<int32_t>;
  EXPECT_EQ(group(0b010, 0), Ranks({0, 2, 4}));
  EXPECT_EQ(group(0b010, 9), Ranks({7, 9, 11}));
  EXPECT_EQ(group(0b101, 3), Ranks({2, 3, 8, 9}));
  EXPECT_EQ(group(0b001, 5), Ranks({5, 11}));
  EXPECT_EQ(group(0b111, 7).size(), 12u);
  EXPECT_EQ(group(0, 7), Ranks({7}));
}

TEST(Axes, SumsStayInTheirGroup) {
  LibraryBuilder library = makeMesh();
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    for (Sets set : {B, AC, ABC, A}) {
      std::vector<int32_t> group = groupOf(
          *step->get()->library, step->get()->library->axis_sets[set], rank);
      fillFull(step, rank);
      expectOk(calls.all_reduce(step, Undivided, Undivided, set,
                                ZERO_RT_STREAM_COMPUTE));
      for (int64_t i = 0; i < kElements; ++i)
        EXPECT_EQ(dataOf(step, Undivided)[i], sumOf(group, i));
    }
    // A ring over 2 of 12 ranks sends half of the bytes, there and back.
    zero_rt_counters before = countersOf(runtimeOf(step));
    expectOk(calls.all_reduce(step, Undivided, Undivided, A,
                              ZERO_RT_STREAM_COMPUTE));
    EXPECT_EQ(countersOf(runtimeOf(step)).bytes_sent - before.bytes_sent,
              kElements * 8);
  });
}

TEST(Axes, SlicesAreNumberedInTheGroup) {
  LibraryBuilder library = makeMesh();
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    for (auto [set, buffer] : {std::pair(B, OverB), std::pair(AC, OverAC)}) {
      std::vector<int32_t> group = groupOf(
          *step->get()->library, step->get()->library->axis_sets[set], rank);
      fillFull(step, rank);
      expectOk(calls.reduce_scatter(step, Undivided, buffer, set,
                                    ZERO_RT_STREAM_COMPUTE));
      expectOk(calls.reduce_scatter_add(step, Undivided, buffer, set,
                                        ZERO_RT_STREAM_COMPUTE));
      Range held = step->get()->held(buffer);
      EXPECT_EQ(held.size(), kElements / int64_t(group.size()));
      EXPECT_EQ(held.begin,
                held.size() * step->get()->groups[size_t(set)].rank);
      for (int64_t i = held.begin; i < held.end; ++i)
        EXPECT_EQ(dataOf(step, buffer)[i - held.begin], 2 * sumOf(group, i));
      // Each rank's slice of the full buffer reaches its group.
      for (int64_t i = 0; i < kElements; ++i)
        dataOf(step, Undivided)[i] =
            i >= held.begin && i < held.end ? valueOf(rank, i) : -1;
      expectOk(calls.all_gather(step, Undivided, set, ZERO_RT_STREAM_COMPUTE));
      for (int64_t i = 0; i < kElements; ++i)
        EXPECT_EQ(dataOf(step, Undivided)[i],
                  valueOf(group[size_t(i / held.size())], i));
    }
    // A slice may be summed over the other axes.
    expectOk(calls.all_reduce(step, OverB, OverB, AC, ZERO_RT_STREAM_COMPUTE));
    expectStatus(ZERO_RT_INTERNAL,
                 calls.reduce_scatter(step, Undivided, OverB, AC,
                                      ZERO_RT_STREAM_COMPUTE),
                 "'over_b' is no sharded twin of 'full'");
    expectStatus(ZERO_RT_INTERNAL,
                 calls.all_gather(step, Undivided, 4, ZERO_RT_STREAM_COMPUTE),
                 "axis set 4 is out of range");
  });
}

// Sets of axes that differ in one of a single rank are one group.
TEST(Axes, SetsMayHaveTheSameRanks) {
  LibraryBuilder library(4);
  library.axes = {{library.addText("a"), 2},
                  {library.addText("b"), 1},
                  {library.addText("c"), 2}};
  library.axisSets = {0b001, 0b011, 0b010};
  library.addBuffer({"full", ZERO_RT_F64, kElements});
  library.addProtocolState("idle");
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    for (int32_t set : {0, 1, 2, 1, 0}) {
      fillFull(step, rank);
      expectOk(callsOf(step).all_reduce(step, Undivided, Undivided, set,
                                        ZERO_RT_STREAM_COMPUTE));
      std::vector<int32_t> group = groupOf(
          *step->get()->library, step->get()->library->axis_sets[set], rank);
      EXPECT_EQ(group.size(), set == 2 ? 1u : 2u);
      EXPECT_EQ(dataOf(step, Undivided)[0], sumOf(group, 0));
    }
  });
}

TEST(Axes, ScalarsCountReplicatedOnce) {
  LibraryBuilder library = makeMesh();
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    int32_t b = rank / 2 % 3;
    slotsOf(step)[0] = 1 + b; // the same over a and c
    slotsOf(step)[1] = 1;
    expectOk(calls.count_replicated_once(step, 0, AC));
    expectOk(calls.all_reduce_scalars(step, 0, 2, ABC, ZERO_RT_STREAM_COMPUTE));
    EXPECT_EQ(slotsOf(step)[0], 1 + 2 + 3);
    EXPECT_EQ(slotsOf(step)[1], 12);
    // Nothing is left of what is not a number.
    slotsOf(step)[0] = rank == 0 ? 7 : std::nan("");
    expectOk(calls.count_replicated_once(step, 0, ABC));
    expectOk(calls.all_reduce_scalars(step, 0, 1, ABC, ZERO_RT_STREAM_COMPUTE));
    EXPECT_EQ(slotsOf(step)[0], 7);
  });
}

TEST(Axes, SayWhoDidNotComeByItsOwnNumber) {
  LibraryBuilder library = makeMesh();
  Options options;
  options.timeoutMs = 200;
  // A rank that still creates its step would hear of the error, and fail.
  std::atomic<int> numCreated{0};
  runSteps(
      library.get(),
      [&](int32_t rank, zero_rt_step *step) {
        ++numCreated;
        if (rank != 7 && rank != 9)
          return; // the third of their group, 11, stays away
        while (numCreated < 12 && !testing::Test::HasFailure())
          std::this_thread::yield();
        // Who comes second finds a broken group.
        zero_rt_status status = callsOf(step).all_reduce(
            step, Undivided, Undivided, B, ZERO_RT_STREAM_COMPUTE);
        EXPECT_TRUE(status == ZERO_RT_TIMEOUT || status == ZERO_RT_POISONED);
        expectStatus(status, status, "11");
      },
      options);
}

TEST(Axes, StepsMeetInGroupsOfTheirOwn) {
  LibraryBuilder library = makeMesh();
  const zero_rt_library &tables = library.get();
  runRanks(12, [&](int32_t rank, zero_rt_runtime *runtime) {
    for (int round = 0; round < 3; ++round) {
      StepHandle one = createStep(runtime, tables);
      StepHandle two = createStep(runtime, tables);
      fillFull(one.get(), rank);
      fillFull(two.get(), rank);
      expectOk(callsOf(one.get()).all_reduce(one.get(), Undivided, Undivided, A,
                                             ZERO_RT_STREAM_COMPUTE));
      expectOk(callsOf(two.get()).all_reduce(two.get(), Undivided, Undivided, B,
                                             ZERO_RT_STREAM_COMPUTE));
    }
  });
}
