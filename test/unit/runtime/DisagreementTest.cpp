//===- DisagreementTest.cpp - Ranks that differ, stall or leave -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"
#include "zero_rt/step.h"

#include <chrono>
#include <functional>
#include <string>
#include <thread>

using namespace zero_rt::test;

namespace {

/// Two full buffers and a sharded one.
LibraryBuilder makeBuffers(int32_t ranks, int64_t elements = 12) {
  LibraryBuilder library(ranks);
  library.addProtocolState("idle");
  library.addBuffer({"b0", ZERO_RT_F32, elements});
  library.addBuffer({"b1", ZERO_RT_F32, elements});
  library.addBuffer({"shard", ZERO_RT_F32, elements, true});
  return library;
}

TEST(Disagreement, NamesBothOperations) {
  LibraryBuilder library = makeBuffers(2);
  std::string messages[2];
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectStatus(
        ZERO_RT_MISMATCH,
        rank == 1 ? calls.reduce_scatter(step, 0, 2, 0, ZERO_RT_STREAM_COMPUTE)
                  : calls.all_reduce(step, 0, 0, 0, ZERO_RT_STREAM_COMPUTE));
    messages[rank] = zero_rt_message();
  });
  // The text begins with whoever came last.
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_TRUE(messages[0] == "rank 1 is in reduce_scatter of 'b0', rank 0 in "
                             "all_reduce of 'b0'" ||
              messages[0] == "rank 0 is in all_reduce of 'b0', rank 1 in "
                             "reduce_scatter of 'b0'")
      << messages[0];
}

// Before work that the ranks do by other means.
TEST(Disagreement, RanksMeet) {
  LibraryBuilder library = makeBuffers(2);
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    for (const char *work : {"gather", "scatter"})
      expectOk(zero_rt_step_meet(step, work));
    expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_step_meet(step, nullptr),
                 "work is null");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_step_meet(step, ""),
                 "meet: work has 0 characters, expected 1 to 127");
    std::string longest(127, 'w');
    expectOk(zero_rt_step_meet(step, longest.c_str()));
    longest += 'w';
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 zero_rt_step_meet(step, longest.c_str()),
                 "meet: work has more than 127 characters, expected 1 to 127");
  });
}

TEST(Disagreement, OneRankMeetsNobody) {
  LibraryBuilder library = makeBuffers(2);
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectStatus(ZERO_RT_MISMATCH,
                 rank == 0
                     ? calls.meet(step, "gather")
                     : calls.all_reduce(step, 0, 0, 0, ZERO_RT_STREAM_COMPUTE),
                 "meet of 'gather'");
    // The group is broken, and the step of the rank that met nobody.
    expectStatus(ZERO_RT_POISONED, calls.meet(step, "gather"), "since: ");
  });
}

TEST(Disagreement, RanksMeetForDifferentWork) {
  LibraryBuilder library = makeBuffers(2);
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    expectStatus(ZERO_RT_MISMATCH,
                 zero_rt_step_meet(step, rank == 0 ? "gather" : "scatter"),
                 "'scatter'");
  });
}

// Also a rank that comes later learns of it, once; then the group is gone.
TEST(Disagreement, ReachesAllRanks) {
  LibraryBuilder library = makeBuffers(3);
  Gate gate;
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    if (rank == 2)
      gate.wait();
    expectStatus(
        ZERO_RT_MISMATCH,
        calls.all_reduce(step, rank == 1, rank == 1, 0, ZERO_RT_STREAM_COMPUTE),
        "all_reduce of 'b1'");
    gate.open();
    expectStatus(ZERO_RT_POISONED,
                 calls.all_reduce(step, 0, 0, 0, ZERO_RT_STREAM_COMPUTE),
                 "the group is broken since: rank ");
  });
}

TEST(Disagreement, ComparesSizes) {
  LibraryBuilder small = makeBuffers(2, 4);
  LibraryBuilder large = makeBuffers(2, 6);
  const zero_rt_library *libraries[] = {&small.get(), &large.get()};
  runRanks(2, [&](int32_t rank, zero_rt_runtime *runtime) {
    StepHandle step = createStep(runtime, *libraries[rank]);
    zero_rt_status status =
        callsOf(step.get())
            .all_reduce(step.get(), 0, 0, 0, ZERO_RT_STREAM_COMPUTE);
    expectStatus(ZERO_RT_MISMATCH, status, "all_reduce of 'b0' (4 x f32)");
    expectStatus(ZERO_RT_MISMATCH, status, "all_reduce of 'b0' (6 x f32)");
  });
}

TEST(Disagreement, ComparesTypes) {
  LibraryBuilder single = makeBuffers(2);
  LibraryBuilder twice = makeBuffers(2);
  twice.buffers[0].dtype = ZERO_RT_F64;
  const zero_rt_library *libraries[] = {&single.get(), &twice.get()};
  runRanks(2, [&](int32_t rank, zero_rt_runtime *runtime) {
    StepHandle step = createStep(runtime, *libraries[rank]);
    zero_rt_status status =
        callsOf(step.get())
            .all_reduce(step.get(), 0, 0, 0, ZERO_RT_STREAM_COMPUTE);
    expectStatus(ZERO_RT_MISMATCH, status, "all_reduce of 'b0' (12 x f32)");
    expectStatus(ZERO_RT_MISMATCH, status, "all_reduce of 'b0' (12 x f64)");
  });
}

TEST(Disagreement, TellsStepsApart) {
  LibraryBuilder library = makeBuffers(2);
  const zero_rt_library &tables = library.get();
  runRanks(2, [&](int32_t rank, zero_rt_runtime *runtime) {
    StepHandle steps[] = {createStep(runtime, tables),
                          createStep(runtime, tables)};
    zero_rt_step *step = steps[rank].get();
    expectStatus(
        ZERO_RT_MISMATCH,
        callsOf(step).all_reduce(step, 0, 0, 0, ZERO_RT_STREAM_COMPUTE),
        "of another step or another turn");
  });
}

TEST(Disagreement, StalledRanksAreNamed) {
  LibraryBuilder library = makeBuffers(4);
  Options options;
  options.timeoutMs = 100;
  Gate gates[2]; // each of the others has given up
  runSteps(
      library.get(),
      [&](int32_t rank, zero_rt_step *step) {
        const zero_rt_calls &calls = callsOf(step);
        if (rank % 2 == 0) {
          expectStatus(
              ZERO_RT_TIMEOUT,
              calls.reduce_scatter(step, 0, 2, 0, ZERO_RT_STREAM_COMPUTE),
              "reduce_scatter of 'b0' did not finish within 100 ms: "
              "ranks 1, 3 did not come");
          gates[rank / 2].open();
        } else {
          for (Gate &gate : gates)
            gate.wait();
        }
        expectStatus(ZERO_RT_POISONED,
                     calls.all_gather(step, 0, 0, ZERO_RT_STREAM_COMPUTE),
                     "the group is broken since: reduce_scatter of 'b0' did "
                     "not finish");
      },
      options);
}

// As a user sees it: apply fails, and the step can only be destroyed.
TEST(Disagreement, AStalledApplyPoisonsTheStep) {
  LibraryBuilder library = makeTrainStep(2);
  Options options;
  options.timeoutMs = 100;
  Gate gate;
  runSteps(
      library.get(),
      [&](int32_t rank, zero_rt_step *step) {
        expectOk(callsOf(step).begin_backward(step, 0));
        passAll(step);
        if (rank == 1)
          gate.wait();
        if (rank == 0)
          expectStatus(ZERO_RT_TIMEOUT, applyStep(step),
                       "reduce_scatter of 'b0' did not finish within 100 ms: "
                       "rank 1 did not come");
        else
          expectStatus(ZERO_RT_POISONED, applyStep(step),
                       "the group is broken");
        gate.open();
        expectStatus(
            ZERO_RT_POISONED, callsOf(step).begin_backward(step, 0),
            "step 'train' can only be destroyed since: apply failed: ");
      },
      options);
}

/// Runs |body| and expects it to end long before the timeout.
void expectPrompt(const zero_rt_library &library,
                  const std::function<void(int32_t, zero_rt_runtime *)> &body) {
  auto start = std::chrono::steady_clock::now();
  runRanks(int32_t(library.ranks), body);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

TEST(Disagreement, DestroyingAStepFreesThoseWhoWait) {
  LibraryBuilder library = makeBuffers(2);
  const zero_rt_library &tables = library.get();
  // With the pause the other rank waits already, without it comes later.
  for (int pause : {0, 50}) {
    expectPrompt(tables, [&](int32_t rank, zero_rt_runtime *runtime) {
      StepHandle step = createStep(runtime, tables);
      if (rank == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(pause));
        return;
      }
      if (pause == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      expectStatus(ZERO_RT_TIMEOUT,
                   callsOf(step.get())
                       .all_gather(step.get(), 1, 0, ZERO_RT_STREAM_COMPUTE),
                   "rank 1 destroyed its step and will not come to all_gather "
                   "of 'b1', where rank 0 waits");
    });
  }
}

// Steps that end on all ranks leave nothing behind.
TEST(Disagreement, StepsMayFollowEachOther) {
  LibraryBuilder library = makeBuffers(3);
  const zero_rt_library &tables = library.get();
  runRanks(3, [&](int32_t, zero_rt_runtime *runtime) {
    for (int i = 0; i < 5; ++i) {
      StepHandle step = createStep(runtime, tables);
      expectOk(callsOf(step.get())
                   .all_reduce(step.get(), 0, 0, 0, ZERO_RT_STREAM_COMPUTE));
    }
  });
}

// The step that a call needs is named, not what its rank destroyed after it.
TEST(Disagreement, TheFirstThingDestroyedIsNamed) {
  LibraryBuilder library = makeBuffers(2);
  const zero_rt_library &tables = library.get();
  zero_rt_group *group = nullptr;
  expectOk(zero_rt_local_group_create(2, &group));
  zero_rt_runtime *runtimes[2];
  for (int32_t r = 0; r < 2; ++r)
    expectOk(zero_rt_create(group, r, nullptr, &runtimes[r]));
  std::thread leaving([&] {
    createStep(runtimes[1], tables);
    expectOk(zero_rt_destroy(runtimes[1]));
  });
  {
    StepHandle step = createStep(runtimes[0], tables);
    leaving.join();
    expectStatus(ZERO_RT_TIMEOUT,
                 callsOf(step.get())
                     .all_gather(step.get(), 1, 0, ZERO_RT_STREAM_COMPUTE),
                 "rank 1 destroyed its step and will not come to all_gather "
                 "of 'b1', where rank 0 waits");
  }
  expectOk(zero_rt_destroy(runtimes[0]));
  expectOk(zero_rt_group_destroy(group));
}

TEST(Disagreement, DestroyingARuntimeFreesThoseWhoWait) {
  LibraryBuilder library = makeBuffers(2);
  const zero_rt_library &tables = library.get();
  zero_rt_group *group = nullptr;
  expectOk(zero_rt_local_group_create(2, &group));
  zero_rt_runtime *runtimes[2];
  for (int32_t r = 0; r < 2; ++r)
    expectOk(zero_rt_create(group, r, nullptr, &runtimes[r]));
  std::thread waiting([&] {
    zero_rt_step *step = nullptr;
    expectStatus(
        ZERO_RT_TIMEOUT,
        callsOf(runtimes[0]).step_create(runtimes[0], &tables, nullptr, &step),
        "rank 1 destroyed its runtime and will not come to step_create, where "
        "rank 0 waits");
  });
  expectOk(zero_rt_destroy(runtimes[1]));
  waiting.join();
  expectOk(zero_rt_destroy(runtimes[0]));
  expectOk(zero_rt_group_destroy(group));
}

// A rank may join when others already wait in the first collective.
TEST(Disagreement, LateJoinersAreWelcome) {
  LibraryBuilder library = makeBuffers(2);
  const zero_rt_library &tables = library.get();
  zero_rt_group *group = nullptr;
  expectOk(zero_rt_local_group_create(2, &group));
  auto run = [&](int32_t rank) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30 * rank));
    zero_rt_runtime *runtime = nullptr;
    expectOk(zero_rt_create(group, rank, nullptr, &runtime));
    EXPECT_NE(createStep(runtime, tables), nullptr);
    expectOk(zero_rt_destroy(runtime));
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  expectOk(zero_rt_group_destroy(group));
}

} // namespace
