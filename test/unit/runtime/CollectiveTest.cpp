//===- CollectiveTest.cpp - Sums and gathers, bit for bit -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibraryBuilder.h"
#include "Ranks.h"
#include "core/numeric.h"
#include "core/step.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

enum { Full, Shard };

LibraryBuilder makeBuffers(int32_t ranks, int32_t dtype, int64_t elements) {
  LibraryBuilder library(ranks);
  library.addProtocolState("idle");
  library.addBuffer({"full", dtype, elements});
  if (elements % ranks == 0)
    library.addBuffer({"shard", dtype, elements, true});
  return library;
}

/// What a rank holds before a collective. |exact| values are small integers,
/// whose sums every type holds; the others have to be rounded.
std::vector<double> values(int32_t rank, int64_t elements, bool exact) {
  std::mt19937 random(uint32_t(rank * 7919 + elements));
  std::vector<double> result(static_cast<size_t>(elements));
  for (double &value : result)
    value = exact ? double(int(random() % 31) - 15)
                  : std::ldexp(double(random()), int(random() % 12) - 38);
  return result;
}

/// The definition of a reduction, written on its own: rank by rank in the type
/// that sums are taken in, rounded once. The result is in |dtype|.
std::vector<char> sumOf(int32_t dtype, int32_t ranks, int64_t elements,
                        bool exact) {
  std::vector<double> sums(size_t(elements), 0.0);
  for (int32_t r = 0; r < ranks; ++r) {
    std::vector<double> mine = values(r, elements, exact);
    std::vector<double> stored(mine.size());
    std::vector<char> bytes(mine.size() * 8);
    convert(dtype, bytes.data(), ZERO_RT_F64, mine.data(), elements);
    convert(ZERO_RT_F64, stored.data(), dtype, bytes.data(), elements);
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] = dtype == ZERO_RT_F64
                    ? sums[i] + stored[i]
                    : double(float(sums[i]) + float(stored[i]));
  }
  std::vector<char> result(size_t(elements * elementSize(dtype)));
  convert(dtype, result.data(), ZERO_RT_F64, sums.data(), elements);
  return result;
}

void writeValues(zero_rt_step *step, int32_t dtype,
                 const std::vector<double> &data) {
  convert(dtype, step->get()->buffers[Full].data, ZERO_RT_F64, data.data(),
          int64_t(data.size()));
}

/// Compares elements [begin, ...) of |expected| with what lies at |data|.
void expectBytes(const std::vector<char> &expected, int64_t firstByte,
                 const void *data, int64_t bytes) {
  auto *actual = static_cast<const char *>(data);
  EXPECT_TRUE(std::equal(actual, actual + bytes, expected.begin() + firstByte));
}

void checkAllReduce(int32_t ranks, int32_t dtype, int64_t elements,
                    bool exact) {
  LibraryBuilder library = makeBuffers(ranks, dtype, elements);
  std::vector<char> expected = sumOf(dtype, ranks, elements, exact);
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    writeValues(step, dtype, values(rank, elements, exact));
    expectOk(
        callsOf(step).all_reduce(step, Full, Full, 0, ZERO_RT_STREAM_COMPUTE));
    expectBytes(expected, 0, step->get()->buffers[Full].data,
                int64_t(expected.size()));
    zero_rt_counters counters = countersOf(runtimeOf(step));
    EXPECT_EQ(counters.all_reduces, 1);
    EXPECT_EQ(counters.bytes_sent,
              2 * int64_t(expected.size()) * (ranks - 1) / ranks);
  });
}

/// Twice: the second time the result is added to the first.
void checkReduceScatter(int32_t ranks, int32_t dtype, int64_t elements,
                        bool exact) {
  LibraryBuilder library = makeBuffers(ranks, dtype, elements);
  std::vector<char> expected = sumOf(dtype, ranks, elements, exact);
  std::vector<double> doubled(static_cast<size_t>(elements));
  convert(ZERO_RT_F64, doubled.data(), dtype, expected.data(), elements);
  for (double &value : doubled)
    value *= 2; // exact
  std::vector<char> expectedTwice(expected.size());
  convert(dtype, expectedTwice.data(), ZERO_RT_F64, doubled.data(), elements);
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    int64_t bytes = int64_t(expected.size()) / ranks;
    writeValues(step, dtype, values(rank, elements, exact));
    expectOk(callsOf(step).reduce_scatter(step, Full, Shard, 0,
                                          ZERO_RT_STREAM_COMPUTE));
    expectBytes(expected, rank * bytes, step->get()->buffers[Shard].data,
                bytes);
    expectOk(callsOf(step).reduce_scatter_add(step, Full, Shard, 0,
                                              ZERO_RT_STREAM_COMPUTE));
    expectBytes(expectedTwice, rank * bytes, step->get()->buffers[Shard].data,
                bytes);
    zero_rt_counters counters = countersOf(runtimeOf(step));
    EXPECT_EQ(counters.reduce_scatters, 2);
    EXPECT_EQ(counters.bytes_sent, 2 * (bytes * (ranks - 1)));
  });
}

void checkAllGather(int32_t ranks, int32_t dtype, int64_t elements) {
  LibraryBuilder library = makeBuffers(ranks, dtype, elements);
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    // Every rank has values of its own everywhere; only its slice counts.
    writeValues(step, dtype, values(rank, elements, true));
    expectOk(callsOf(step).all_gather(step, Full, 0, ZERO_RT_STREAM_COMPUTE));
    std::vector<double> gathered(static_cast<size_t>(elements));
    convert(ZERO_RT_F64, gathered.data(), dtype,
            step->get()->buffers[Full].data, elements);
    for (int32_t r = 0; r < ranks; ++r) {
      std::vector<double> theirs = values(r, elements, true);
      for (int64_t i = r * elements / ranks; i < (r + 1) * elements / ranks;
           ++i)
        ASSERT_EQ(gathered[size_t(i)], theirs[size_t(i)]) << i;
    }
    EXPECT_EQ(countersOf(runtimeOf(step)).all_gathers, 1);
  });
}

constexpr int32_t allTypes[] = {ZERO_RT_F16, ZERO_RT_BF16, ZERO_RT_F32,
                                ZERO_RT_F64};

TEST(Collective, AllReduce) {
  for (int32_t dtype : allTypes)
    for (int32_t ranks : {1, 2, 3, 4})
      for (int64_t elements : {0, 1, 3, 64, 1001})
        for (bool exact : {true, false})
          checkAllReduce(ranks, dtype, elements, exact);
}

TEST(Collective, ReduceScatter) {
  for (int32_t dtype : allTypes)
    for (int32_t ranks : {1, 2, 3, 4})
      for (int64_t slice : {0, 1, 3, 513})
        for (bool exact : {true, false})
          checkReduceScatter(ranks, dtype, slice * ranks, exact);
}

TEST(Collective, AllGather) {
  for (int32_t dtype : allTypes)
    for (int32_t ranks : {1, 2, 3, 4})
      for (int64_t elements : {0, 1, 5, 1001})
        checkAllGather(ranks, dtype, elements);
}

// More elements than one chunk, shared between threads of each rank.
TEST(Collective, ThreadsDoNotChangeSums) {
  int64_t elements = 2 * (3 * 32768 + 5);
  LibraryBuilder library = makeBuffers(2, ZERO_RT_F32, elements);
  std::vector<char> expected = sumOf(ZERO_RT_F32, 2, elements, false);
  for (int32_t threads : {1, 3}) {
    Options options;
    options.threads = threads;
    runSteps(
        library.get(),
        [&](int32_t rank, zero_rt_step *step) {
          writeValues(step, ZERO_RT_F32, values(rank, elements, false));
          expectOk(callsOf(step).all_reduce(step, Full, Full, 0,
                                            ZERO_RT_STREAM_COMPUTE));
          expectBytes(expected, 0, step->get()->buffers[Full].data,
                      int64_t(expected.size()));
        },
        options);
  }
}

// 1 + 256 is a tie in bf16 and becomes 256, and so does 256 + 1. In one go 258
// would come out.
TEST(Collective, AddsTheRoundedSum) {
  LibraryBuilder library = makeBuffers(2, ZERO_RT_BF16, 2);
  library.buffers[Shard].fill = bitsOf(1);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    writeValues(step, ZERO_RT_BF16, std::vector<double>(2, rank ? 256 : 1));
    expectOk(callsOf(step).reduce_scatter_add(step, Full, Shard, 0,
                                              ZERO_RT_STREAM_COMPUTE));
    auto *shard = static_cast<uint16_t *>(step->get()->buffers[Shard].data);
    EXPECT_EQ(floatFromBF16(*shard), 256);
  });
}

// A sum of negative zeros is negative zero, as when the ranks are added by
// hand.
TEST(Collective, KeepsTheSignOfZero) {
  LibraryBuilder library = makeBuffers(2, ZERO_RT_F32, 2);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    writeValues(step, ZERO_RT_F32, {-0.0, 0.0});
    expectOk(
        callsOf(step).all_reduce(step, Full, Full, 0, ZERO_RT_STREAM_COMPUTE));
    auto *data = static_cast<float *>(step->get()->buffers[Full].data);
    EXPECT_TRUE(std::signbit(data[0]));
    EXPECT_FALSE(std::signbit(data[1]));
  });
}

// Nobody may leave while others still read its buffer.
TEST(Collective, BackToBack) {
  LibraryBuilder library = makeBuffers(4, ZERO_RT_F32, 64);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    auto *data = static_cast<float *>(step->get()->buffers[Full].data);
    for (int turn = 0; turn < 100; ++turn) {
      std::fill_n(data, 64, float(rank + turn));
      expectOk(callsOf(step).all_reduce(step, Full, Full, 0,
                                        ZERO_RT_STREAM_COMPUTE));
      ASSERT_EQ(data[63], float(4 * turn + 6));
      std::fill_n(data, 64, float(rank));
      expectOk(callsOf(step).reduce_scatter(step, Full, Shard, 0,
                                            ZERO_RT_STREAM_COMPUTE));
      std::fill_n(data, 64, float(rank));
      expectOk(callsOf(step).all_gather(step, Full, 0, ZERO_RT_STREAM_COMPUTE));
      ASSERT_EQ(data[0], 0);
      ASSERT_EQ(data[63], 3);
    }
  });
}

TEST(Collective, Scalars) {
  LibraryBuilder library = makeBuffers(3, ZERO_RT_F32, 3);
  for (const char *name : {"a", "b", "c"})
    library.addSlot(name, 1);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    slotsOf(step)[1] = rank;
    slotsOf(step)[2] = std::ldexp(1.0, -60 * rank);
    expectOk(callsOf(step).all_reduce_scalars(step, 1, 2, 0,
                                              ZERO_RT_STREAM_COMPUTE));
    EXPECT_EQ(slotsOf(step)[0], 1);
    EXPECT_EQ(slotsOf(step)[1], 3);
    EXPECT_EQ(slotsOf(step)[2], 1); // in order: the small ones are lost
    expectOk(callsOf(step).all_reduce_scalars(step, 3, 0, 0,
                                              ZERO_RT_STREAM_COMPUTE));
    expectStatus(
        ZERO_RT_INTERNAL,
        callsOf(step).all_reduce_scalars(step, 2, 2, 0, ZERO_RT_STREAM_COMPUTE),
        "scalar slots [2, 4) of 3");
    zero_rt_counters counters = countersOf(runtimeOf(step));
    EXPECT_EQ(counters.scalar_all_reduces, 2);
    EXPECT_EQ(counters.all_reduces, 0);
    EXPECT_EQ(counters.bytes_sent, 2 * 16 * 2 / 3);
  });
}

TEST(Collective, RefusesUnfitBuffers) {
  LibraryBuilder library = makeBuffers(1, ZERO_RT_F32, 4);
  library.addBuffer({"other", ZERO_RT_BF16, 4, true});
  library.addBuffer({"later", ZERO_RT_F32, 4, false, ZERO_RT_ROLE_GRADIENT,
                     ZERO_RT_SPACE_DEVICE, true});
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectStatus(ZERO_RT_INTERNAL,
                 calls.all_gather(step, Shard, 0, ZERO_RT_STREAM_COMPUTE),
                 "all_gather: buffer 'shard' is sharded, expected full");
    expectStatus(
        ZERO_RT_INTERNAL,
        calls.reduce_scatter(step, Full, Full, 0, ZERO_RT_STREAM_COMPUTE),
        "'full' is no sharded twin of 'full'");
    expectStatus(ZERO_RT_INTERNAL,
                 calls.reduce_scatter(step, Full, 2, 0, ZERO_RT_STREAM_COMPUTE),
                 "'other' is no sharded twin of 'full'");
    expectStatus(ZERO_RT_INTERNAL,
                 calls.all_reduce(step, 3, 3, 0, ZERO_RT_STREAM_COMPUTE),
                 "all_reduce: buffer 'later' is not allocated");
    expectStatus(ZERO_RT_INTERNAL,
                 calls.all_reduce(step, 4, 4, 0, ZERO_RT_STREAM_COMPUTE),
                 "buffer 4 is out of range");
  });
}

} // namespace
