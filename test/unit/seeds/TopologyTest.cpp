//===- TopologyTest.cpp - Exact cases on meshes of several axes -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a gradient and its norm must be where experts, tensor-parallel slices
// and parts of a sequence live on different ranks, with the arithmetic beside
// it, and what known bugs made of it.
//
//===----------------------------------------------------------------------===//

#include "PlacedStep.h"

#include <cmath>

using namespace zero;
using namespace zero::test;

namespace {

class Topology : public PlacedStepTest {};

INSTANTIATE_TEST_SUITE_P(Ways, Topology, testing::ValuesIn(getWays()), nameOf);

constexpr const char *kExpertMesh = R"("edp" = 2, "ep" = 2)";
const Placed kDense = {"dense", "1xf32", "partial = [edp, ep, micro]"};
const Placed kExperts = {"experts", "2xf32, sharded = [ep]",
                         "partial = [edp, micro], reduced = [ep]"};

} // namespace

// Four batches, one a rank. They contribute {1, 2, 3, 6} to expert 0, {2, 4, 4,
// 6} to expert 1 and {6, 10, 14, 18} to what all ranks have; each counts 1/4.
// The all-to-all has summed over ep: expert 0 gets 1 + 2 and 3 + 6, expert 1
// gets 2 + 4 and 4 + 6. So 12/4, 16/4 and 48/4, and a norm of sqrt(9 + 16 +
// 144).
TEST_P(Topology, ExpertsCountAllBatches) {
  run(printStep(kExpertMesh, "edp : -1, ep : -1", "", {kDense, kExperts}),
      {{{"dense", {6}}, {"experts", {3}}},
       {{"dense", {10}}, {"experts", {6}}},
       {{"dense", {14}}, {"experts", {9}}},
       {{"dense", {18}}, {"experts", {10}}}});
  EXPECT_EQ(norm, 13);
  for (int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(applied(rank, "dense"), Values{12});
    EXPECT_EQ(applied(rank, "experts"), Values{rank % 2 ? 4.0 : 3.0});
  }
}

// The same with a parameter for each expert, on the ranks that have it.
TEST_P(Topology, ExpertsOfTheirOwnCountAllBatches) {
  auto expert = [](const char *name, int64_t coordinate) {
    std::string on = ", on = [ep : " + std::to_string(coordinate) + "]";
    return Placed{name, "1xf32" + on, "partial = [edp, micro], reduced = [ep]"};
  };
  run(printStep(kExpertMesh, "edp : -1, ep : -1", "",
                {kDense, expert("expert0", 0), expert("expert1", 1)}),
      {{{"dense", {6}}, {"expert0", {3}}},
       {{"dense", {10}}, {"expert1", {6}}},
       {{"dense", {14}}, {"expert0", {9}}},
       {{"dense", {18}}, {"expert1", {10}}}});
  EXPECT_EQ(norm, 13);
  for (int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(applied(rank, "dense"), Values{12});
    EXPECT_EQ(applied(rank, rank % 2 ? "expert1" : "expert0"),
              Values{rank % 2 ? 4.0 : 3.0});
  }
}

// The same where experts are averaged over the ranks that hold them (DeepSpeed
// #6546): twice as large. The weight is one for the whole step, so a step of
// such experts alone shows it.
TEST_P(Topology, ExpertsAveragedOverTheirOwnRanksAreTwiceAsLarge) {
  run(printStep(kExpertMesh, "edp : -1", "", {kExperts}),
      {{{"experts", {3}}},
       {{"experts", {6}}},
       {{"experts", {9}}},
       {{"experts", {10}}}});
  EXPECT_EQ(applied(0, "experts"), Values{6});
  EXPECT_EQ(applied(1, "experts"), Values{8});
}

// Experts with gradients (2, 4) and (6, 8): sqrt(20 + 100), wherever they live.
// An average of the ranks' norms, (sqrt(20) + 10) / 2, is 7.236 (DeepSpeed
// #8475).
TEST_P(Topology, TheNormDoesNotDependOnWhereExpertsLive) {
  const std::vector<Backward> apart = {{{"w", {2, 4}}}, {{"w", {6, 8}}}};
  const std::vector<Backward> together = {{{"w", {2, 4, 6, 8}}}};
  run(printStep(R"("edp" = 1, "ep" = 2)", "", "",
                {{"w", "4xf32, sharded = [ep]",
                  "partial = [edp, micro], reduced = [ep]"}}),
      apart);
  EXPECT_DOUBLE_EQ(norm, std::sqrt(120.0));
  EXPECT_NEAR(norm, 10.954, 1e-3);
  run(printStep(R"("edp" = 1, "ep" = 1)", "", "",
                {{"w", "4xf32, sharded = [ep]",
                  "partial = [edp, micro], reduced = [ep]"}}),
      together);
  EXPECT_DOUBLE_EQ(norm, std::sqrt(120.0));
}

// Experts split over tensor-parallel ranks count with every slice. Squares are
// 114.4364 of what these ranks share and 18.1244 of each slice: 12.2754, and
// 11.5135 where the second slice is left out, which makes the clip coefficient
// 6.62 % too large (Megatron-LM, experts and tensor parallelism).
TEST_P(Topology, TheNormCountsEverySliceOfAnExpert) {
  const double shared = std::sqrt(114.4364), slice = std::sqrt(18.1244);
  const Backward each = {{"shared", {shared}}, {"expert", {slice}}};
  run(printStep(R"("edp" = 1, "ep" = 1, "tp" = 2)", "", "replicated [tp]",
                {{"shared", "1xf32", "partial = [edp, ep, micro]"},
                 {"expert", "1x2xf32, sharded = [ep, tp : 1]",
                  "partial = [edp, micro], reduced = [ep]"}}),
      {each, each});
  EXPECT_NEAR(norm, 12.2754, 1e-4);
  EXPECT_NEAR(std::sqrt(norm * norm - slice * slice), 11.5135, 1e-4);
}

namespace {

constexpr const char *kSequenceMesh = R"("dp" = 2, "cp" = 2, "tp" = 2)";

/// 2^rank on each rank: a sum of some of them tells which.
std::vector<Backward> powersOfTwo() {
  std::vector<Backward> gradients;
  for (int rank = 0; rank < 8; ++rank)
    gradients.push_back({{"ln", {double(1 << rank)}}});
  return gradients;
}

} // namespace

// A layer norm under sequence parallelism: context- and tensor-parallel ranks
// have parts of one sequence, which add up; data-parallel ones have batches, of
// which the mean is taken. 255 / 2.
TEST_P(Topology, ALayerNormSumsOverTheSequence) {
  run(printStep(kSequenceMesh, "dp : -1", "",
                {{"ln", "1xf32", "partial = [dp, cp, tp, micro]"}}),
      powersOfTwo());
  EXPECT_EQ(norm, 127.5);
  for (int64_t rank = 0; rank < 8; ++rank)
    EXPECT_EQ(applied(rank, "ln"), Values{127.5});
}

// Declared as the same on tensor-parallel ranks, which it is not, half of it is
// lost: 85 / 2 on one of them, and 170 / 2 on the other. A runtime that checks
// preconditions says so.
TEST_P(Topology, WhatIsNotReplicatedIsFoundOut) {
  std::string source =
      printStep(kSequenceMesh, "dp : -1", "replicated [tp]",
                {{"ln", "1xf32", "partial = [dp, cp, micro]"}});
  if (GetParam().how != How::compiled) {
    run(source, powersOfTwo());
    if (GetParam().how == How::scheduled) {
      EXPECT_EQ(applied(0, "ln"), Values{42.5});
      EXPECT_EQ(applied(1, "ln"), Values{85});
    }
    return;
  }
  step = std::make_unique<Step>(source, GetParam());
  std::string message = refused(powersOfTwo());
  EXPECT_NE(message.find("gradient of 'ln' differs between rank 1 and rank 0, "
                         "which must deliver the same"),
            std::string::npos)
      << message;
}

// Known bugs: a mean over the sequence, too (DeepSpeed #5555).
TEST_P(Topology, AMeanOverTheSequenceIsTooSmall) {
  auto run = [&](const char *weight) {
    this->run(printStep(kSequenceMesh, weight, "",
                        {{"ln", "1xf32", "partial = [dp, cp, tp, micro]"}}),
              powersOfTwo());
    return norm;
  };
  EXPECT_EQ(run("cp : -1, dp : -1"), 63.75);
  EXPECT_EQ(run("cp : -1, dp : -1, tp : -1"), 31.875);
}

// What every rank has whole counts once, and what is split counts with each
// slice.
TEST_P(Topology, SharedParametersCountReplicatedOnceInTheNorm) {
  run(printStep(R"("dp" = 2, "tp" = 4)", "", "replicated [tp]",
                {{"shared", "1xf32", "partial = [dp, micro]"},
                 {"split", "4xf32, sharded = [tp]", "partial = [dp, micro]"}}),
      {{{"shared", {1}}, {"split", {1}}},
       {{"shared", {1}}, {"split", {2}}},
       {{"shared", {1}}, {"split", {1}}},
       {{"shared", {1}}, {"split", {1}}},
       {{"shared", {2}}, {"split", {0}}},
       {{"shared", {2}}, {"split", {0}}},
       {{"shared", {2}}, {"split", {2}}},
       {{"shared", {2}}, {"split", {0}}}});
  // shared: 1 + 2; split: 1, 2, 3, 1. Counted four times it would be sqrt(51).
  EXPECT_DOUBLE_EQ(norm, std::sqrt(9.0 + 1 + 4 + 9 + 1));
  for (int64_t rank = 0; rank < 8; ++rank) {
    const double slices[] = {1, 2, 3, 1};
    EXPECT_EQ(applied(rank, "shared"), Values{3});
    EXPECT_EQ(applied(rank, "split"), Values{slices[rank % 4]});
  }
}

// Ranks meet over ep in each backward pass at most. Those that differ over edp
// made other numbers of backward passes, and none waits for another for ever.
TEST(UnequalBackwards, AreRefusedWhereRanksDoNotMeet) {
  for (How how : {How::scheduled, How::compiled})
    for (int stage : {1, 2}) {
      Step step(
          printStep(kExpertMesh, "edp : -1, ep : -1", "", {kDense, kExperts}),
          {how, stage, "shard-over=ep"});
      Backward backward{{"dense", {6}}, {"experts", {3}}};
      Window window{
          {backward}, {backward}, {backward, backward}, {backward, backward}};
      mlir::FailureOr<StepResult> result = step.apply(1, window);
      ASSERT_TRUE(mlir::succeeded(result));
      EXPECT_EQ(result->outcome, Outcome::refused_unequal_backwards)
          << result->message;
      for (int64_t rank = 0; rank < 4; ++rank)
        EXPECT_EQ(step.getOn(rank, "dense"), Values{0});
    }
}
