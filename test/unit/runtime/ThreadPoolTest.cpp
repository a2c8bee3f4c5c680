//===- ThreadPoolTest.cpp - Work shared between threads -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/localize.h"
#include "core/thread_pool.h"

#include "gtest/gtest.h"

using namespace zero_rt;

namespace {

TEST(ThreadPool, RunsEveryIndexOnce) {
  for (int32_t threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 2, 3, 100}) {
      std::vector<int> hits(size_t(count), 0);
      pool.run(count, [&](int64_t i) { ++hits[size_t(i)]; });
      EXPECT_EQ(hits, std::vector<int>(size_t(count), 1)) << threads;
    }
  }
}

// Jobs follow each other closely; a worker late for one must not take the next
// for it.
TEST(ThreadPool, RunsManySmallJobs) {
  ThreadPool pool(3);
  std::vector<int64_t> sums(4, 0);
  for (int64_t job = 0; job < 2000; ++job)
    pool.run(4, [&](int64_t i) { sums[size_t(i)] += job; });
  EXPECT_EQ(sums, std::vector<int64_t>(4, 2000 * 1999 / 2));
}

// Pieces meet at multiples of chunkElements, whatever the interval begins with.
TEST(ThreadPool, CutsAtMultiplesOfChunks) {
  static_assert(chunkElements % blockElements == 0);
  ThreadPool pool(1);
  std::vector<std::pair<int64_t, int64_t>> pieces;
  auto record = [&](int64_t begin, int64_t end) {
    pieces.emplace_back(begin, end);
  };
  pool.forChunks(5, 5, record);
  EXPECT_TRUE(pieces.empty());
  pool.forChunks(5, 2 * chunkElements + 1, record);
  std::vector<std::pair<int64_t, int64_t>> expected = {
      {5, chunkElements},
      {chunkElements, 2 * chunkElements},
      {2 * chunkElements, 2 * chunkElements + 1}};
  EXPECT_EQ(pieces, expected);
}

TEST(Localize, SlicesCoverTheBucketInOrder) {
  for (int64_t elements : {0, 1, 2, 7, 12, 4097}) {
    for (int32_t ranks : {1, 2, 3, 4}) {
      int64_t end = 0;
      for (int32_t r = 0; r < ranks; ++r) {
        Range slice = ownedSlice(elements, r, ranks);
        EXPECT_EQ(slice.begin, end);
        EXPECT_EQ(slice.begin, r * elements / ranks);
        end = slice.end;
      }
      EXPECT_EQ(end, elements);
    }
  }
}

TEST(Localize, CutsAndShifts) {
  Range local = localize({3, 10}, {6, 12});
  EXPECT_EQ(local.begin, 0);
  EXPECT_EQ(local.end, 4);
  EXPECT_TRUE(localize({0, 6}, {6, 12}).empty());
}

} // namespace
