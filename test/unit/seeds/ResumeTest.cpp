//===- ResumeTest.cpp - A step that goes on from a checkpoint within it ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checkpoint between two backward passes is loaded at any stage. Gradients
// are small whole numbers, or such over a power of two, so all sums are exact,
// in whatever order they are taken.
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include "llvm/Support/FileSystem.h"

using namespace zero;
using namespace zero::test;

namespace {

constexpr int64_t kRanks = 2;
constexpr int64_t kBackwards = 4;

StepText makeText() {
  StepText text;
  text.weight = "accumulation : -1, dp : -1";
  text.parameters = {{"w", 8, ""}, {"expert", 3, "optional"}, {"one", 1, ""}};
  return text;
}

/// Gradients of which no two are alike. Rank 1 never has one of `expert`, and
/// rank 0 has it in the first backward pass only.
Window makeWindow() {
  Window ranks(kRanks);
  double next = 1;
  auto take = [&](int64_t elements) {
    std::vector<double> values(elements);
    for (double &value : values)
      value = next++;
    return values;
  };
  for (int64_t r = 0; r < kRanks; ++r)
    for (int64_t k = 0; k < kBackwards; ++k) {
      ranks[r].push_back({{"w", take(8)}, {"one", take(1)}});
      if (r == 0 && k == 0)
        ranks[r].back()["expert"] = take(3);
    }
  return ranks;
}

std::vector<double> getAll(Step &step) {
  std::vector<double> all;
  for (const char *name : {"w", "expert", "one"})
    llvm::append_range(all, step.get(name));
  return all;
}

std::vector<Way> getCompiledWays() {
  std::vector<Way> ways;
  llvm::copy_if(getWays(), std::back_inserter(ways), [](const Way &way) {
    return way.how == How::compiled && way.hinted == Hinted::none;
  });
  for (Way &way : ways)
    way.bucketBytes = 16;
  return ways;
}

class Resume : public testing::Test {
protected:
  Resume() {
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("zero-resume", folder));
  }
  ~Resume() override { llvm::sys::fs::remove_directories(folder); }

  llvm::SmallString<64> folder;
};

} // namespace

TEST_F(Resume, EveryStageGoesOnFromEveryOther) {
  Window window = makeWindow();
  Step whole(makeText(), {How::compiled, 0});
  ASSERT_TRUE(succeeded(whole.apply(0.5, window)));
  std::vector<double> expected = getAll(whole);
  for (int64_t passes : {1, 3, 4})
    for (const Way &from : getCompiledWays()) {
      Step first(makeText(), from);
      std::vector<RankInputs> inputs(kRanks);
      for (int64_t r = 0; r < kRanks; ++r)
        inputs[r].backwards.assign(window[r].begin(),
                                   window[r].begin() + passes);
      ASSERT_TRUE(succeeded(first.getEngine().saveWithin(inputs, folder, 1)));
      // What is saved is no part of the step that follows.
      ASSERT_TRUE(succeeded(first.apply(0.5, window)));
      EXPECT_EQ(getAll(first), expected);
      for (const Way &to : getCompiledWays()) {
        SCOPED_TRACE(llvm::formatv("{0} of stage {1} {2} to {3} {4}", passes,
                                   from.stage, from.pipeline, to.stage,
                                   to.pipeline)
                         .str());
        Step rest(makeText(), to);
        auto loaded = rest.getEngine().load(folder);
        ASSERT_TRUE(succeeded(loaded));
        EXPECT_EQ(loaded->backwards, passes);
        auto result = rest.apply(0.5, window);
        ASSERT_TRUE(succeeded(result));
        EXPECT_EQ(result->backwards, kBackwards);
        EXPECT_EQ(getAll(rest), expected);
      }
    }
}

namespace {

/// Batches of all ranks together in a step. Ranks take turns.
constexpr int64_t kBatches = 8;

/// By what a caller multiplies gradients: 0 or -1 as a power.
struct Prescaling {
  int64_t ranks = 0;
  int64_t passes = 0;
};

StepText makeTextOf(int64_t ranks, Prescaling scaling) {
  StepText text = makeText();
  text.ranks = ranks;
  if (scaling.passes)
    text.arrives = "accumulation : -1";
  if (scaling.ranks)
    text.arrives += std::string(scaling.passes ? ", " : "") + "dp : -1";
  return text;
}

/// The gradients of the first |count| batches. `expert` has one of batch 1.
Window makeBatches(int64_t ranks, int64_t count, Prescaling scaling) {
  double factor = 1;
  if (scaling.ranks)
    factor /= ranks;
  if (scaling.passes)
    factor /= kBatches / ranks;
  Window window(ranks);
  for (int64_t batch = 0; batch < count; ++batch) {
    auto take = [&](int64_t elements) {
      std::vector<double> values(elements);
      for (auto [i, value] : llvm::enumerate(values))
        value = double(batch * 9 + int64_t(i) + 1) * factor;
      return values;
    };
    auto &rank = window[batch % ranks];
    rank.push_back({{"w", take(8)}, {"one", take(1)}});
    if (batch == 1)
      rank.back()["expert"] = take(3);
  }
  return window;
}

} // namespace

TEST_F(Resume, OtherNumbersOfRanksGoOn) {
  constexpr int64_t done = 4;
  auto makeWay = [](int stage) {
    Way way{How::compiled, stage};
    way.bucketBytes = 16;
    return way;
  };
  for (Prescaling scaling : {Prescaling{0, 0}, {0, -1}, {-1, 0}, {-1, -1}})
    for (auto [from, to] :
         {std::pair<int64_t, int64_t>(1, 2), {2, 1}, {2, 4}, {4, 2}, {4, 1}}) {
      Window window = makeBatches(to, kBatches, scaling);
      Step whole(makeTextOf(to, scaling), makeWay(0));
      ASSERT_TRUE(succeeded(whole.apply(0.5, window)));
      std::vector<double> expected = getAll(whole);
      for (int fromStage : {1, 2}) {
        Step first(makeTextOf(from, scaling), makeWay(fromStage));
        std::vector<RankInputs> inputs(from);
        for (auto [r, backwards] :
             llvm::enumerate(makeBatches(from, done, scaling)))
          inputs[r].backwards.assign(backwards.begin(), backwards.end());
        ASSERT_TRUE(succeeded(first.getEngine().saveWithin(inputs, folder, 1)));
        for (int toStage : {0, 2, 3}) {
          SCOPED_TRACE(llvm::formatv("ranks^{0} passes^{1}: {2} at stage {3} "
                                     "to {4} at stage {5}",
                                     scaling.ranks, scaling.passes, from,
                                     fromStage, to, toStage)
                           .str());
          Step rest(makeTextOf(to, scaling), makeWay(toStage));
          auto loaded = rest.getEngine().load(folder);
          ASSERT_TRUE(succeeded(loaded));
          EXPECT_EQ(loaded->backwards, done / to);
          auto result = rest.apply(0.5, window);
          ASSERT_TRUE(succeeded(result));
          EXPECT_EQ(result->backwards, kBatches / to);
          EXPECT_EQ(getAll(rest), expected);
        }
      }
    }
}
