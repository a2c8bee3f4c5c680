//===- ReduceDtypeTest.cpp - Addends of a narrower type -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibraryBuilder.h"
#include "Ranks.h"
#include "core/numeric.h"
#include "core/step.h"

#include <cmath>
#include <random>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

enum { Wire, Whole, Slice };

LibraryBuilder makeBuffers(int32_t ranks, int32_t wire, int32_t sum,
                           int64_t elements) {
  LibraryBuilder library(ranks);
  library.addProtocolState("idle");
  library.addBuffer({"reduce_dtype", wire, elements});
  library.addBuffer({"whole", sum, elements});
  if (elements % ranks == 0)
    library.addBuffer({"slice", sum, elements, true});
  return library;
}

/// What |rank| holds, as |wire| has it.
std::vector<double> addends(int32_t rank, int32_t wire, int64_t elements) {
  std::mt19937 random(uint32_t(rank * 7919 + elements));
  std::vector<double> values(static_cast<size_t>(elements));
  for (double &value : values)
    value = std::ldexp(double(random()), int(random() % 12) - 38);
  std::vector<char> bytes(values.size() * 8);
  convert(wire, bytes.data(), ZERO_RT_F64, values.data(), elements);
  convert(ZERO_RT_F64, values.data(), wire, bytes.data(), elements);
  return values;
}

/// Rank by rank, each sum rounded to |sum|, and nothing else.
std::vector<double> expectedSum(int32_t ranks, int32_t wire, int32_t sum,
                                int64_t elements) {
  std::vector<double> sums(static_cast<size_t>(elements));
  for (int32_t rank = 0; rank < ranks; ++rank) {
    std::vector<double> mine = addends(rank, wire, elements);
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] = sum == ZERO_RT_F64 ? sums[i] + mine[i]
                                   : double(float(sums[i]) + float(mine[i]));
  }
  return sums;
}

std::vector<double> read(const zero_rt_step *step, int32_t buffer,
                         int64_t elements) {
  std::vector<double> values(static_cast<size_t>(elements));
  convert(ZERO_RT_F64, values.data(),
          step->get()->library->buffers[buffer].dtype,
          step->get()->buffers[size_t(buffer)].data, elements);
  return values;
}

void writeAddends(const zero_rt_step *step, int32_t rank, int32_t wire,
                  int64_t elements) {
  std::vector<double> mine = addends(rank, wire, elements);
  convert(wire, step->get()->buffers[Wire].data, ZERO_RT_F64, mine.data(),
          elements);
}

struct Types {
  int32_t wire;
  int32_t sum;
};
constexpr Types kTypes[] = {{ZERO_RT_BF16, ZERO_RT_F32},
                            {ZERO_RT_F16, ZERO_RT_F32},
                            {ZERO_RT_BF16, ZERO_RT_F64},
                            {ZERO_RT_F32, ZERO_RT_F64}};

TEST(Wire, AllReduceSumsInTheTargetsType) {
  for (auto [wire, sum] : kTypes)
    for (int32_t ranks : {1, 2, 3, 4})
      for (int64_t elements : {1, 2, 12, 1021}) {
        LibraryBuilder library = makeBuffers(ranks, wire, sum, elements);
        std::vector<double> expected = expectedSum(ranks, wire, sum, elements);
        runSteps(library.get(), [&, wire = wire,
                                 sum = sum](int32_t rank, zero_rt_step *step) {
          writeAddends(step, rank, wire, elements);
          expectOk(callsOf(step).all_reduce(step, Wire, Whole, 0,
                                            ZERO_RT_STREAM_COMPUTE));
          EXPECT_EQ(read(step, Whole, elements), expected);
          // What travelled is as it was.
          EXPECT_EQ(read(step, Wire, elements), addends(rank, wire, elements));
          zero_rt_counters counters = countersOf(runtimeOf(step));
          EXPECT_EQ(counters.all_reduces, 1);
          EXPECT_EQ(counters.bytes_sent,
                    elements * (elementSize(wire) + elementSize(sum)) *
                        (ranks - 1) / ranks);
        });
      }
}

TEST(Wire, ReduceScatterSumsInTheTargetsType) {
  constexpr int64_t elements = 24;
  for (auto [wire, sum] : kTypes)
    for (int32_t ranks : {1, 2, 3, 4}) {
      LibraryBuilder library = makeBuffers(ranks, wire, sum, elements);
      std::vector<double> expected = expectedSum(ranks, wire, sum, elements);
      runSteps(
          library.get(), [&, wire = wire](int32_t rank, zero_rt_step *step) {
            int64_t size = elements / ranks;
            std::vector<double> mine(expected.begin() + rank * size,
                                     expected.begin() + (rank + 1) * size);
            writeAddends(step, rank, wire, elements);
            expectOk(callsOf(step).reduce_scatter(step, Wire, Slice, 0,
                                                  ZERO_RT_STREAM_COMPUTE));
            EXPECT_EQ(read(step, Slice, size), mine);
            expectOk(callsOf(step).reduce_scatter_add(step, Wire, Slice, 0,
                                                      ZERO_RT_STREAM_COMPUTE));
            for (double &value : mine)
              value *= 2; // exact
            EXPECT_EQ(read(step, Slice, size), mine);
            EXPECT_EQ(countersOf(runtimeOf(step)).bytes_sent,
                      2 * elements * elementSize(wire) * (ranks - 1) / ranks);
          });
    }
}

// 256 + 1 is a tie in bf16, and 257 in f32.
TEST(Wire, TheSumIsNotRoundedToTheWire) {
  LibraryBuilder library = makeBuffers(2, ZERO_RT_BF16, ZERO_RT_F32, 2);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    std::vector<double> mine(2, rank ? 256 : 1);
    convert(ZERO_RT_BF16, step->get()->buffers[Wire].data, ZERO_RT_F64,
            mine.data(), 2);
    expectOk(
        callsOf(step).all_reduce(step, Wire, Whole, 0, ZERO_RT_STREAM_COMPUTE));
    EXPECT_EQ(read(step, Whole, 2), std::vector<double>(2, 257));
  });
}

TEST(Wire, RanksSumInOneType) {
  LibraryBuilder single = makeBuffers(2, ZERO_RT_BF16, ZERO_RT_F32, 4);
  LibraryBuilder twice = makeBuffers(2, ZERO_RT_BF16, ZERO_RT_F64, 4);
  const zero_rt_library *libraries[] = {&single.get(), &twice.get()};
  runRanks(2, [&](int32_t rank, zero_rt_runtime *runtime) {
    StepHandle step = createStep(runtime, *libraries[rank]);
    zero_rt_status status =
        callsOf(step.get())
            .all_reduce(step.get(), Wire, Whole, 0, ZERO_RT_STREAM_COMPUTE);
    expectStatus(ZERO_RT_MISMATCH, status, "(4 x bf16 summed in f32)");
    expectStatus(ZERO_RT_MISMATCH, status, "(4 x bf16 summed in f64)");
  });
}

TEST(Wire, ASumInANarrowerTypeIsRefused) {
  LibraryBuilder library = makeBuffers(2, ZERO_RT_F32, ZERO_RT_BF16, 4);
  library.addBuffer({"f16", ZERO_RT_F16, 4});
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectStatus(ZERO_RT_INTERNAL,
                 calls.all_reduce(step, Wire, Whole, 0, ZERO_RT_STREAM_COMPUTE),
                 "all_reduce: 'whole' cannot take sums of 'reduce_dtype'");
    expectStatus(ZERO_RT_INTERNAL,
                 calls.all_reduce(step, Whole, 3, 0, ZERO_RT_STREAM_COMPUTE),
                 "all_reduce: 'f16' cannot take sums of 'whole'");
    expectStatus(
        ZERO_RT_INTERNAL,
        calls.reduce_scatter(step, Wire, Slice, 0, ZERO_RT_STREAM_COMPUTE),
        "'slice' is no sharded twin of 'reduce_dtype'");
  });
}

} // namespace
