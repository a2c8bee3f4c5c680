//===- ProgramTest.cpp - The scheduled phase ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InterpreterFixture.h"

#include <cmath>

using namespace zero;
using namespace zero::test;

namespace {

/// SGD over the sum of all gradients, on two ranks. What varies is what runs
/// when a backward pass is closed, and when the step is applied.
std::string makeProgram(const std::string &closeFirst,
                        const std::string &beforeUpdate,
                        const std::string &arriveNext = "zrt.pack accumulate") {
  return R"(
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 3xbf16
zero.parameter @b : 2xbf16 optional
zero.bucket @b0 : 8xf32 arrives bf16 [@w, @b] offsets [0, 4] extents [4, 4]
zrt.program @s on @m inputs [@lr] results [sum, backwards] [@sums, @statistics] {
  zrt.slots @lr [0.0]
  zrt.slots @sums [0.0]
  zrt.slots @counts [0.0, 0.0]
  zrt.slots @statistics [0.0, 0.0]
  zrt.slots @outcome [0.0]
  zrt.slots @row [0.0, 0.0]
  zrt.slots @steps [0.0]
  zrt.scalar_state "steps" in @steps[0]
  zrt.buffer @gradient : !zero.value<8xf32, partial = [dp]> role gradient in device
  zrt.buffer @reduced : !zero.value<8xf32, sharded = [dp]> role gradient in device on_demand
  zrt.buffer @parameters : !zero.value<8xbf16> role parameter in device
  zrt.buffer @master : !zero.value<8xf32, sharded = [dp]> role state in device fill 1.5
  zrt.state parameter of @b0 in @parameters
  zrt.state master of @b0 in @master
  zrt.kernel @store [read bf16, write f32] scalars 0 {
  ^body(%g: bf16):
    %x = arith.extf %g : bf16 to f32
    zrt.yield %x : f32
  }
  zrt.kernel @add [read bf16, update f32] scalars 0 {
  ^body(%g: bf16, %a: f32):
    %x = arith.extf %g : bf16 to f32
    %s = arith.addf %a, %x : f32
    zrt.yield %s : f32
  }
  zrt.kernel @squares [read f32] scalars 0 sums {
  ^body(%g: f32):
    %x = arith.extf %g : f32 to f64
    %s = arith.mulf %x, %x : f64
    zrt.yield %s : f64
  }
  zrt.kernel @update [read f32, update f32, write bf16] scalars 2 predicated {
  ^body(%g: f32, %p: f32, %v: f64, %lr: f64):
    %l = arith.truncf %lr : f64 to f32
    %u = arith.mulf %g, %l : f32
    %p1 = arith.subf %p, %u : f32
    %q = arith.truncf %p1 : f32 to bf16
    zrt.yield %p1, %q : f32, bf16
  }
  zrt.segments @whole ends [8] rows [] scalars []
  zrt.segments @groups ends [4, 8] rows [0, 0] scalars [@row]
  zrt.bucket_table @b0 into @gradient store @store add @add parameters @parameters master @master
  zrt.scalars @decide {
    %a = zrt.load_slot @counts[0]
    %m = zrt.load_slot @counts[1]
    zrt.store_slot %a, @statistics[0]
    zrt.store_slot %m, @statistics[1]
    zrt.yield
  }
  zrt.scalars @rows {
    %zero = arith.constant 0.0 : f64
    %two = arith.constant 2.0 : f64
    %one = arith.constant 1.0 : f64
    %m = zrt.load_slot @statistics[1]
    %missing = arith.cmpf une, %m, %zero : f64
    %v = arith.select %missing, %two, %zero : f64
    zrt.store_slot %v, @outcome[0]
    zrt.store_slot %v, @row[0]
    %lr = zrt.load_slot @lr[0]
    zrt.store_slot %lr, @row[1]
    %n = zrt.load_slot @steps[0]
    %n1 = arith.addf %n, %one : f64
    zrt.store_slot %n1, @steps[0]
    zrt.yield
  }
  zrt.handler @arrive_first {
    zrt.pack
  }
  zrt.handler @arrive_next {
    )" + arriveNext +
         R"(
  }
  zrt.handler @close_first {
    )" + closeFirst +
         R"(
  }
  zrt.handler @finish {
    zrt.count_arrivals to @counts
    zrt.run_scalars @decide
    zrt.all_reduce_scalars @statistics over [dp]
    zrt.run_scalars @rows
    )" + beforeUpdate +
         R"(
    zrt.launch @squares [@reduced] over @whole own [dp] sum @sums
    zrt.all_reduce_scalars @sums over [dp]
    zrt.launch @update [@reduced, @master, @parameters] over @groups own [dp]
    zrt.all_gather @parameters over [dp]
    zrt.release @reduced
    zrt.commit @outcome
  }
  zrt.transition idle on begin to first run []
  zrt.transition first on arrive to first run [@arrive_first]
  zrt.transition first on accumulate to between run [@close_first]
  zrt.transition first on apply to idle run [@close_first, @finish]
  zrt.transition between on begin to next run []
  zrt.transition next on arrive to next run [@arrive_next]
  zrt.transition next on accumulate to between run []
  zrt.transition next on apply to idle run [@finish]
  zrt.transition between on apply to idle run [@finish]
  zrt.transition first on discard to idle run []
  zrt.transition between on discard to idle run []
  zrt.transition next on discard to idle run []
})";
}

const char *const kFill = "zrt.fill_missing @b0";
const char *const kReduce = R"(
    zrt.allocate @reduced
    zrt.reduce_scatter @gradient to @reduced over [dp])";

/// Two backward passes of two ranks; b arrives once.
std::vector<RankInputs> makeInputs() {
  std::vector<RankInputs> ranks(2);
  for (int r : {0, 1}) {
    ranks[r].inputs = {0.5};
    for (int b : {0, 1})
      ranks[r].backwards.emplace_back()["w"] = {1.0 + b + 10.0 * r, 0, 1};
  }
  ranks[1].backwards[1]["b"] = {4, 8};
  return ranks;
}

} // namespace

TEST(Program, RunsItsProtocol) {
  for (Arithmetic arithmetic : {Arithmetic::Typed, Arithmetic::F64}) {
    Runner run(makeProgram(kFill, kReduce), arithmetic);
    ASSERT_TRUE(mlir::succeeded(run->bindParameter("w", {1, 1, 1.001})));
    EXPECT_EQ(run.state("master", "w"), (Gradient{1, 1, 1}));
    EXPECT_EQ(run.state("master", "b"), (Gradient{1.5, 1.5}));
    StepResult result = run.applyInputs(makeInputs());
    EXPECT_EQ(result.outcome, Outcome::applied);
    EXPECT_EQ(result.backwards, 2);
    // w sums to 26, 0, 4 and b to 4, 8; pads are zero.
    EXPECT_EQ(result.values, (std::vector<double>{676 + 16 + 16 + 64, 4}));
    for (int rank : {0, 1}) {
      EXPECT_EQ(run.parameter("w", rank), (Gradient{-12, 1, -1}));
      EXPECT_EQ(run.parameter("b", rank), (Gradient{-0.5, -2.5}));
    }
    EXPECT_EQ(run.state("master", "w"), (Gradient{-12, 1, -1}));
    EXPECT_EQ(run.state("steps", ""), std::vector<double>{1});
    // The next step begins anew.
    EXPECT_EQ(run.applyInputs(makeInputs()).values[0], 676 + 16 + 16 + 64);
  }
}

// Of each rank and of all of them, anew in each step.
TEST(Program, CountsBackwardPassesWithAGradient) {
  const std::string count = "zrt.count_delivered @b to @statistics[0]\n";
  const std::string sum = "zrt.all_reduce_scalars @statistics over [dp]\n";
  std::vector<RankInputs> inputs = makeInputs();
  Runner own(makeProgram(kFill, kReduce + ("\n" + count)));
  EXPECT_EQ(own.applyInputs(inputs).values[1], 0);
  inputs[0].backwards[0]["b"] = inputs[0].backwards[1]["b"] = {1, 2};
  EXPECT_EQ(own.applyInputs(inputs).values[1], 2);
  Runner run(makeProgram(kFill, kReduce + ("\n" + count + sum)));
  EXPECT_EQ(run.applyInputs(inputs).values[1], 3);
  ASSERT_TRUE(mlir::succeeded(run->discard(inputs)));
  EXPECT_EQ(run.applyInputs(makeInputs()).values[1], 1);
  // A refused step counts, and leaves nothing to the next one.
  inputs[1].backwards[0].erase("w");
  StepResult refused = run.applyInputs(inputs);
  EXPECT_EQ(refused.outcome, Outcome::refused_missing_gradient);
  EXPECT_EQ(refused.values[1], 3);
  EXPECT_EQ(run.applyInputs(makeInputs()).values[1], 1);
}

// Who closes the last backward pass makes no difference, on any rank.
TEST(Program, AccumulateMayCloseTheLastBackward) {
  for (int closing : {1, 2}) {
    Runner run(makeProgram(kFill, kReduce), Arithmetic::Typed);
    std::vector<RankInputs> inputs = makeInputs();
    for (int rank = 0; rank < closing; ++rank)
      inputs[rank].closesLast = true;
    EXPECT_EQ(run.applyInputs(inputs).values[0], 676 + 16 + 16 + 64);
    EXPECT_EQ(run.applyInputs(makeInputs()).values[0], 676 + 16 + 16 + 64);
  }
}

TEST(Program, NothingIsLeftOfWhatIsDiscarded) {
  for (bool closesLast : {false, true}) {
    Runner run(makeProgram(kFill, kReduce), Arithmetic::Typed);
    ASSERT_TRUE(mlir::succeeded(run->bindParameter("w", {1, 1, 1})));
    std::vector<RankInputs> inputs = makeInputs();
    for (RankInputs &rank : inputs)
      rank.closesLast = closesLast;
    ASSERT_TRUE(mlir::succeeded(run->discard(inputs)));
    EXPECT_EQ(run.parameter("w", 0), (Gradient{1, 1, 1}));
    EXPECT_EQ(run.state("steps", ""), std::vector<double>{0});
    EXPECT_EQ(run.applyInputs(makeInputs()).values[0], 676 + 16 + 16 + 64);
  }
}

TEST(Program, APredicatedKernelLeavesStateAlone) {
  Runner run(makeProgram(kFill, kReduce));
  std::vector<RankInputs> inputs = makeInputs();
  inputs[0].backwards[1].erase("w");
  StepResult result = run.applyInputs(inputs);
  EXPECT_EQ(result.outcome, Outcome::refused_missing_gradient);
  EXPECT_EQ(result.message, "step refused: gradient of 'w' never arrived on "
                            "rank 0 (backward pass 2 of 2)");
  EXPECT_EQ(run.state("master", "w"), Gradient(3, 1.5));
}

// Mutant: without fill_missing the poison of the step before shows.
TEST(Program, ReadBeforeWriteIsNaN) {
  Runner run(makeProgram("", kReduce));
  EXPECT_TRUE(std::isnan(run.applyInputs(makeInputs()).values[0]));
}

// Mutant, seed #7981: a second backward pass that stores loses the first.
TEST(Program, StoringTwiceLosesAContribution) {
  Runner run(makeProgram(kFill, kReduce, "zrt.pack"));
  EXPECT_NE(run.applyInputs(makeInputs()).values[0], 676 + 16 + 16 + 64);
}

TEST(Program, UnallocatedBuffersAreErrors) {
  Runner run(
      makeProgram(kFill, "zrt.reduce_scatter @gradient to @reduced over [dp]"));
  EXPECT_TRUE(mlir::failed(run->apply(makeInputs())));
}

// Ranks that made different numbers of backward passes apply from different
// states, and meet at the same collectives.
TEST(Program, UnequalBackwardsReachApplyTogether) {
  Runner run(makeProgram(kFill, kReduce));
  std::vector<RankInputs> inputs = makeInputs();
  inputs[0].backwards.pop_back();
  StepResult result = run.applyInputs(inputs);
  // This program counts them and does not refuse: w[0] sums to 26 - 2.
  EXPECT_EQ(result.values[1], 3);
  EXPECT_EQ(run.parameter("w")[0], 1.5 - 12);
}

TEST(Program, ACollectiveInOneRanksProtocolOnlyIsRefused) {
  Runner run(makeProgram(
      std::string(kFill) + "\n zrt.all_reduce @gradient over [dp]", kReduce));
  std::vector<RankInputs> inputs = makeInputs();
  inputs[0].backwards.pop_back();
  StepResult result = run.applyInputs(inputs);
  EXPECT_EQ(result.outcome, Outcome::refused_unequal_backwards);
  EXPECT_EQ(result.message, "step refused: ranks made unequal numbers of "
                            "backward passes: rank 0 made 1, rank 1 made 2");
}

// A collective where only some ranks have an arrival would wait forever.
TEST(Program, RanksThatWaitForEachOtherAreReported) {
  Runner run(makeProgram(kFill, kReduce, "zrt.all_reduce @gradient over [dp]"));
  EXPECT_TRUE(mlir::failed(run->apply(makeInputs())));
}

//===----------------------------------------------------------------------===//
// Orders of streams
//===----------------------------------------------------------------------===//

/// An arrival that waits for the caller, and for which the caller waits.
static std::string makeArrival(const std::string &name,
                               const std::string &pack) {
  return "zrt.record @" + name + ".caller\n zrt.wait @" + name +
         ".caller on compute\n " + pack + "\n zrt.record @" + name +
         ".packed\n zrt.wait @" + name + ".packed on caller\n";
}

/// The program with its reduction on the collective stream, without the calls
/// of |lost|.
static std::string makeStreams(const std::vector<std::string> &lost = {}) {
  std::string text = makeProgram(kFill, R"(
    zrt.record @finish.caller
    zrt.wait @finish.caller on compute
    zrt.allocate @reduced
    zrt.record @filled
    zrt.wait @filled on collective
    zrt.reduce_scatter @gradient to @reduced over [dp] on collective
    zrt.record @done
    zrt.wait @done on compute)",
                                 makeArrival("next", "zrt.pack accumulate"));
  auto replace = [&](const std::string &what, const std::string &by) {
    size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    text.replace(at, what.size(), by);
  };
  replace("zrt.pack\n", makeArrival("first", "zrt.pack"));
  replace("zrt.handler @arrive_first", R"(zrt.event @first.caller on caller
  zrt.event @next.caller on caller
  zrt.event @finish.caller on caller
  zrt.event @first.packed on compute
  zrt.event @next.packed on compute
  zrt.event @filled on compute
  zrt.event @done on collective
  zrt.handler @arrive_first)");
  for (const std::string &call : lost)
    replace(call, "");
  return text;
}

/// The number of orders of 64 that differ from program order, or fail. There
/// are two steps, as the caller reads the parameters of the first one.
static int countDifferences(const std::string &text) {
  Runner expected(text);
  expected.applyInputs(makeInputs());
  double sum = expected.applyInputs(makeInputs()).values[0];
  int differences = 0;
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    Runner run(text);
    run->setOrder(seed);
    std::vector<RankInputs> inputs = makeInputs();
    mlir::FailureOr<StepResult> result = run->apply(inputs);
    if (succeeded(result))
      result = run->apply(inputs);
    differences += failed(result) || result->values[0] != sum ||
                   run.parameter() != expected.parameter();
  }
  return differences;
}

TEST(Program, EveryLegalOrderOfStreamsGivesTheSameBits) {
  EXPECT_EQ(countDifferences(makeStreams()), 0);
}

// Mutants: without a wait some order shows the race. The caller writes a tensor
// before it arrives and as soon as it has it back, and reads parameters.
TEST(Program, SomeOrderOfStreamsShowsAMissingWait) {
  for (const char *lost :
       {"zrt.wait @filled on collective", "zrt.wait @done on compute",
        "zrt.wait @first.caller on compute", "zrt.wait @next.caller on compute",
        "zrt.record @first.caller", "zrt.wait @finish.caller on compute",
        "zrt.wait @first.packed on caller", "zrt.wait @next.packed on caller",
        "zrt.record @next.packed"})
    EXPECT_GT(countDifferences(makeStreams({lost})), 0) << lost;
}

// Without a schedule the caller is ordered with the calls.
TEST(Program, ProgramOrderIsTheOnlyOneWithoutStreams) {
  EXPECT_EQ(countDifferences(makeProgram(kFill, kReduce)), 0);
}
