//===- PathsTest.cpp - Paths are walked until nothing changes -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zrt/Paths.h"

#include "llvm/ADT/DenseSet.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;

namespace {

using Set = uint32_t;

/// Each state has a set of bits. Path i copies the set of its first state to
/// its second one, and adds the bits adds[i].
struct Walk {
  std::vector<zrt::Path> paths;
  std::vector<Set> adds;
  llvm::DenseMap<StringAttr, Set> known;
  int walked = 0;

  bool step(const zrt::Path &path) {
    ++walked;
    Set taken = known.lookup(path.from) | adds[&path - paths.data()];
    Set &there = known[path.to];
    bool hasChanged = (taken & ~there) != 0;
    there |= taken;
    return hasChanged;
  }
};

class PathsTest : public testing::Test {
protected:
  StringAttr state(unsigned i) {
    return StringAttr::get(&context, "s" + Twine(i));
  }
  void add(Walk &walk, unsigned from, unsigned to, Set adds) {
    walk.paths.push_back({state(from), state(to), zrt::Event::begin, {}});
    walk.adds.push_back(adds);
  }
  void run(Walk &walk) {
    walk.known[state(0)] = 1;
    zrt::walkPaths(walk.paths, state(0),
                   [&](const zrt::Path &path) { return walk.step(path); });
  }

  MLIRContext context;
};

TEST_F(PathsTest, AreWalkedOnceIfNothingChanges) {
  Walk walk;
  add(walk, 0, 1, 0);
  add(walk, 1, 2, 0);
  run(walk);
  EXPECT_EQ(walk.walked, 2);
  EXPECT_EQ(walk.known[state(2)], 1u);
}

TEST_F(PathsTest, AreWalkedIfNothingIsKnownOfTheStateTheyLeave) {
  Walk walk;
  walk.known[state(0)] = 0;
  add(walk, 0, 1, 0);
  add(walk, 1, 1, 0);
  zrt::walkPaths(walk.paths, state(0),
                 [&](const zrt::Path &path) { return walk.step(path); });
  EXPECT_EQ(walk.walked, 2);
}

TEST_F(PathsTest, OfAStateThatIsNotReachedAreNotWalked) {
  Walk walk;
  add(walk, 1, 0, 2);
  add(walk, 0, 0, 4);
  run(walk);
  EXPECT_EQ(walk.known[state(0)], 5u);
}

TEST_F(PathsTest, LeadToWhatWalkingAllOfThemAgainAndAgainLeadsTo) {
  constexpr unsigned kStates = 6, kPaths = 12;
  std::mt19937 random(25);
  for (int round = 0; round < 300; ++round) {
    Walk walk;
    for (unsigned i = 0; i < kPaths; ++i)
      add(walk, random() % kStates, random() % kStates, 1u << (1 + i));
    Walk all = walk;
    run(walk);
    all.known[state(0)] = 1;
    llvm::DenseSet<StringAttr> reached{state(0)};
    for (bool hasChanged = true; hasChanged;) {
      hasChanged = false;
      for (const zrt::Path &path : all.paths)
        if (reached.contains(path.from)) {
          hasChanged |= all.step(path);
          hasChanged |= reached.insert(path.to).second;
        }
    }
    for (unsigned i = 0; i < kStates; ++i)
      EXPECT_EQ(walk.known[state(i)], all.known[state(i)]) << i;
    EXPECT_LE(walk.walked, all.walked);
  }
}

} // namespace
