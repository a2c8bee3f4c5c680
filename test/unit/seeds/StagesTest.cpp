//===- StagesTest.cpp - One norm over pipeline stages, in exact numbers ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The third seed (DeepSpeed #7847): how many reductions a norm takes must not
// depend on what a stage holds, or ranks hang; and what they must not reduce
// twice they must not.
//
//===----------------------------------------------------------------------===//

#include "PlacedStep.h"

#include <cmath>
#include <limits>

using namespace zero;
using namespace zero::test;

namespace {

class Stages : public PlacedStepTest {
protected:
  /// |perStage|[s] are the gradients of the parameters of stage s, by name. Two
  /// data-parallel ranks of each stage deliver the same, and the mean is taken.
  void runStages(const std::vector<Backward> &perStage) {
    std::string mesh =
        "\"pp\" = " + std::to_string(perStage.size()) + ", \"dp\" = 2";
    run(printStep(mesh, "dp : -1", "", getPlaced(perStage)),
        getGradients(perStage));
  }
  static std::vector<Placed> getPlaced(const std::vector<Backward> &perStage) {
    std::vector<Placed> parameters;
    for (size_t s = 0; s < perStage.size(); ++s)
      for (const auto &entry : perStage[s])
        parameters.push_back({entry.getKey().str(),
                              std::to_string(entry.getValue().size()) +
                                  "xf32, on = [pp : " + std::to_string(s) + "]",
                              "partial = [dp, micro]"});
    return parameters;
  }
  static std::vector<Backward>
  getGradients(const std::vector<Backward> &perStage) {
    std::vector<Backward> gradients;
    for (const Backward &stage : perStage)
      for (int dp = 0; dp < 2; ++dp)
        gradients.push_back(stage);
    return gradients;
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, Stages, testing::ValuesIn(getWays()), nameOf);

const std::vector<Backward> kThreeStages = {
    {{"a", {1}}},
    {{"b", {2}}, {"c", {2}}},
    {{"d", {4}}, {"e", {12}}, {"f", {84}}}};

} // namespace

// 1 + 2 (4) + 16 + 144 + 7056 = 7225 = 85 squared. Summed over dp a second
// time it would be 120.2081528.
TEST_P(Stages, TheNormIsOverAllStages) {
  runStages(kThreeStages);
  EXPECT_EQ(norm, 85);
  for (int64_t rank = 0; rank < 6; ++rank)
    for (const auto &entry : kThreeStages[rank / 2])
      EXPECT_EQ(applied(rank, entry.getKey().str()), entry.getValue());
}

// A rank has what its stage has, and nothing else.
TEST_P(Stages, RanksHoldTheParametersOfTheirStage) {
  runStages(kThreeStages);
  if (GetParam().how == How::compiled)
    return; // which says so with an error
  EXPECT_TRUE(step->getOn(0, "f").empty());
  EXPECT_TRUE(step->getOn(5, "a").empty());
}

// Stages with 0, 1 and 5 parameters: one scalar all-reduce on every rank.
TEST_P(Stages, OneScalarReductionWhateverAStageHolds) {
  std::vector<Backward> stages = {
      {},
      {{"a", {3}}},
      {{"b", {0}}, {"c", {0, 0}}, {"d", {4}}, {"e", {0}}, {"f", {12}}}};
  runStages(stages);
  EXPECT_EQ(norm, 13);
  if (GetParam().how != How::compiled)
    return;
  for (int64_t rank = 0; rank < 6; ++rank) {
    auto counters = step->getEngine().getCounters(rank);
    ASSERT_TRUE(counters);
    EXPECT_EQ(counters->scalar_all_reduces, 1) << "rank " << rank;
    bool hasNothing = rank < 2;
    EXPECT_EQ(counters->all_reduces + counters->reduce_scatters > 0,
              !hasNothing)
        << "rank " << rank;
  }
}

// A pair that is tied over the first and the last stage: 60 from one and 72
// from the other are one gradient of 132. 85 and 132: 157. Counted on both
// stages it would be 205.1170; one of them not added 104.0433, and with the
// other 126.5267.
TEST_P(Stages, TiedGradientsAreAddedBeforeTheNorm) {
  std::vector<Backward> perStage = kThreeStages;
  std::vector<Placed> parameters = getPlaced(perStage);
  parameters.insert(parameters.begin(), {"tied", "1xf32, on = [pp : 0, pp : 2]",
                                         "partial = [dp, pp, micro]"});
  perStage[0]["tied"] = {60};
  perStage[2]["tied"] = {72};
  run(printStep("\"pp\" = 3, \"dp\" = 2", "dp : -1", "", parameters),
      getGradients(perStage));
  EXPECT_EQ(norm, 157);
  for (int64_t rank : {0, 1, 4, 5})
    EXPECT_EQ(applied(rank, "tied"), Values{132});
  EXPECT_EQ(applied(2, "b"), Values{2});
  if (GetParam().how != How::compiled)
    return;
  for (int64_t rank = 0; rank < 6; ++rank) {
    auto counters = step->getEngine().getCounters(rank);
    ASSERT_TRUE(counters);
    EXPECT_EQ(counters->scalar_all_reduces, 1) << "rank " << rank;
  }
}

// One gradient of one stage on one rank is not finite: all ranks skip, and no
// bit of any stage changes.
TEST_P(Stages, AllSkipWhereOneStageIsNotFinite) {
  runStages(kThreeStages);
  std::vector<Backward> gradients = getGradients(kThreeStages);
  gradients[5]["e"] = {std::numeric_limits<double>::infinity()};
  EXPECT_EQ(apply(gradients).outcome, Outcome::skipped_nonfinite);
  for (int64_t rank = 0; rank < 6; ++rank)
    for (const auto &entry : kThreeStages[rank / 2])
      EXPECT_EQ(applied(rank, entry.getKey().str()), entry.getValue());
}

// A gradient that one stage lacks is refused on all of them, with its name.
TEST_P(Stages, AMissingGradientOfOneStageRefusesOnAll) {
  runStages(kThreeStages);
  std::vector<Backward> gradients = getGradients(kThreeStages);
  gradients[2].erase("c");
  StepResult result = apply(gradients);
  EXPECT_EQ(result.outcome, Outcome::refused_missing_gradient);
  EXPECT_NE(result.message.find("gradient of 'c' never arrived on rank 2"),
            std::string::npos)
      << result.message;
  EXPECT_EQ(applied(0, "a"), Values{1});
}

// A gradient of another stage's parameter is an error. Compiled code says so in
// runtime/StagesTest.cpp.
TEST_P(Stages, GradientsOfOtherStagesAreRefused) {
  if (GetParam().how == How::compiled)
    return;
  runStages(kThreeStages);
  std::vector<Backward> gradients = getGradients(kThreeStages);
  gradients[1]["f"] = {84};
  std::string message = refused(gradients);
  EXPECT_NE(message.find("takes no gradient of 'f' on rank 1"),
            std::string::npos)
      << message;
}
