//===- CollectiveBits.cpp - Collectives against sums in order -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CollectiveBits.h"

#include "comm/process/segment.h"
#include "core/localize.h"
#include "core/numeric.h"
#include "device/host/host_program.h"
#include "device/host/reduce.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace zero_rt;

namespace {
struct Case {
  int32_t dtype;
  int32_t sumType;
  int64_t elements;
};

/// Bytes where other processes can read them, if the communicator has such
/// memory.
class Buffer {
public:
  Buffer(Communicator &communicator, const std::vector<char> &contents)
      : segment(communicator.segment()) {
    if (segment && !contents.empty())
      place = static_cast<char *>(segment->allocate(int64_t(contents.size())));
    *this = contents;
  }
  ~Buffer() {
    if (place)
      segment->release(place);
  }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const std::vector<char> &contents) {
    vector = contents;
    std::copy(contents.begin(), contents.end(), data());
    return *this;
  }
  char *data() { return place ? place : vector.data(); }
  std::vector<char> get() { return {data(), data() + vector.size()}; }

private:
  Segment *segment;
  char *place = nullptr;
  std::vector<char> vector; // the size, and the bytes without a segment
};
} // namespace

/// What |rank| contributes: as many magnitudes as there are.
static std::vector<char> makeAddends(const Case &one, int32_t rank) {
  std::vector<double> values(size_t(one.elements));
  std::mt19937 random(unsigned(rank) * 977 + unsigned(one.elements));
  std::uniform_real_distribution<double> mantissa(-1, 1), exponent(-6, 6);
  for (double &value : values)
    value = mantissa(random) * std::exp2(exponent(random));
  std::vector<char> data(size_t(one.elements * elementSize(one.dtype)));
  convert(one.dtype, data.data(), ZERO_RT_F64, values.data(), one.elements);
  return data;
}

static void checkCase(Communicator &communicator, int32_t rank, int32_t ranks,
                      const Case &one) {
  SCOPED_TRACE(testing::Message()
               << dtypeName(one.dtype) << " summed in "
               << dtypeName(one.sumType) << ", " << one.elements
               << " elements, rank " << rank << " of " << ranks);
  zero_rt_library library = {};
  ThreadPool pool(1);
  HostProgram program(library, nullptr, pool);
  Tag tag = {"test", "b", one.elements, one.dtype, one.sumType, 0};
  std::vector<std::vector<char>> addends;
  std::vector<const void *> sources;
  for (int32_t r = 0; r < ranks; ++r)
    addends.push_back(makeAddends(one, r));
  for (const std::vector<char> &data : addends)
    sources.push_back(data.data());
  int64_t size = elementSize(one.sumType);
  std::vector<char> sums(size_t(one.elements * size));
  reduceElements(one.dtype, sources.data(), ranks, one.sumType, sums.data(),
                 false, 0, one.elements);

  Buffer mine(communicator, addends[size_t(rank)]);
  Buffer result(communicator, std::vector<char>(sums.size(), 0x55));
  ASSERT_EQ(communicator.allReduce(tag, program, mine.data(), result.data()),
            0);
  EXPECT_EQ(result.get(), sums);
  EXPECT_EQ(mine.get(), addends[size_t(rank)]);
  if (one.dtype == one.sumType) {
    ASSERT_EQ(communicator.allReduce(tag, program, mine.data(), mine.data()),
              0);
    EXPECT_EQ(mine.get(), sums);
    mine = addends[size_t(rank)];
  }

  Range own = ownedSlice(one.elements, rank, ranks);
  std::vector<char> slice(size_t(own.size() * size)), expected(slice.size());
  const void *shifted[] = {sums.data() + own.begin * size};
  ASSERT_EQ(communicator.reduceScatter(tag, program, mine.data(), slice.data(),
                                       false),
            0);
  EXPECT_TRUE(std::equal(slice.begin(), slice.end(),
                         static_cast<const char *>(shifted[0])));
  // Twice the sum, rounded as one sum that is added to another.
  expected = slice;
  reduceElements(one.sumType, shifted, 1, one.sumType, expected.data(), true, 0,
                 own.size());
  ASSERT_EQ(
      communicator.reduceScatter(tag, program, mine.data(), slice.data(), true),
      0);
  EXPECT_EQ(slice, expected);

  int64_t narrow = elementSize(one.dtype);
  std::vector<char> all(size_t(one.elements * narrow));
  Buffer gathered(communicator, std::vector<char>(all.size(), 0x33));
  for (int32_t r = 0; r < ranks; ++r) {
    Range theirs = ownedSlice(one.elements, r, ranks);
    std::memcpy(all.data() + theirs.begin * narrow,
                addends[size_t(r)].data() + theirs.begin * narrow,
                size_t(theirs.size() * narrow));
  }
  std::memcpy(gathered.data() + own.begin * narrow,
              mine.data() + own.begin * narrow, size_t(own.size() * narrow));
  Tag gather = tag;
  gather.sumType = tag.dtype;
  ASSERT_EQ(communicator.allGather(gather, gathered.data()), 0);
  EXPECT_EQ(gathered.get(), all);
}

void zero_rt::test::checkCollectives(Communicator &communicator, int32_t rank,
                                     int32_t ranks) {
  constexpr int64_t long_ = 200003; // of f32 more than what is sent at once
  const Case cases[] = {
      {ZERO_RT_F32, ZERO_RT_F32, 1},      {ZERO_RT_F32, ZERO_RT_F32, 64},
      {ZERO_RT_F32, ZERO_RT_F32, long_},  {ZERO_RT_BF16, ZERO_RT_F32, 1001},
      {ZERO_RT_BF16, ZERO_RT_BF16, 1001}, {ZERO_RT_F16, ZERO_RT_F16, 77},
      {ZERO_RT_F64, ZERO_RT_F64, 4097}};
  for (const Case &one : cases)
    checkCase(communicator, rank, ranks, one);
  Tag tag = {"exchange", nullptr, 0, ZERO_RT_F64, ZERO_RT_F64, 0};
  std::vector<int32_t> all(size_t(ranks), -1);
  int32_t mine = 100 + rank;
  ASSERT_EQ(communicator.exchange(tag, &mine, all.data(), sizeof(mine)), 0);
  for (int32_t r = 0; r < ranks; ++r)
    EXPECT_EQ(all[size_t(r)], 100 + r);
}
