//===- LaunchTest.cpp - Kernels over slices, segments and threads ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibraryBuilder.h"
#include "Ranks.h"
#include "core/step.h"

#include <cmath>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

// Kernel 0 writes the scalar of its segment, kernel 1 adds operand 0 to 1,
// kernel 2 sums operand 0.
enum { Mark, Add, Sum };
enum { Full, Other, Shard };

void mark(void *const *operands, const double *scalars, int64_t begin,
          int64_t end, double *partials) {
  EXPECT_LT(begin, end);
  EXPECT_EQ(partials, nullptr);
  for (int64_t i = begin; i < end; ++i)
    static_cast<double *>(operands[0])[i] += scalars[0];
}

void add(void *const *operands, const double *, int64_t begin, int64_t end,
         double *) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<double *>(operands[1])[i] +=
        static_cast<const double *>(operands[0])[i];
}

void sum(void *const *operands, const double *, int64_t begin, int64_t end,
         double *partials) {
  EXPECT_EQ(begin % 4096, 0);
  for (int64_t i = begin; i < end; ++i)
    partials[i / 4096] += static_cast<const double *>(operands[0])[i];
}

LibraryBuilder makeBuffers(int32_t ranks, int64_t elements) {
  LibraryBuilder library(ranks);
  library.addProtocolState("idle");
  library.addBuffer({"full", ZERO_RT_F64, elements});
  library.addBuffer({"other", ZERO_RT_F64, elements});
  library.addBuffer({"shard", ZERO_RT_F64, elements, true});
  for (zero_rt_kernel_fn kernel : {mark, add, sum})
    library.addKernel(kernel);
  for (int i = 0; i < 4; ++i)
    library.addSlot("s", i);
  return library;
}

double *dataOf(zero_rt_step *step, int buffer) {
  return static_cast<double *>(step->get()->buffers[size_t(buffer)].data);
}

zero_rt_status launch(zero_rt_step *step, int32_t kernel,
                      std::vector<int32_t> buffers, int32_t table, bool own,
                      int32_t sumSlot = -1) {
  return callsOf(step).launch(step, kernel, buffers.data(),
                              int32_t(buffers.size()), table,
                              step->get()->library->buffers[Full].elements,
                              own ? 0 : -1, sumSlot, ZERO_RT_STREAM_COMPUTE);
}

// Each row gets its scalar; what no row names is not touched.
TEST(Launch, RunsAllRowsWithTheirScalars) {
  LibraryBuilder library = makeBuffers(1, 12);
  library.addTable({{0, 5, 1}, {5, 5, 0}, {7, 12, 2}});
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    expectOk(launch(step, Mark, {Full}, 0, false));
    std::vector<double> expected = {1, 1, 1, 1, 1, 0, 0, 2, 2, 2, 2, 2};
    EXPECT_EQ(std::vector<double>(dataOf(step, Full), dataOf(step, Full) + 12),
              expected);
    EXPECT_EQ(countersOf(runtimeOf(step)).launches, 1);
  });
}

// The same rows, cut to the slice of each rank: full and sharded operands meet
// at the same element.
TEST(Launch, OwnRunsTheSliceOfTheRank) {
  LibraryBuilder library = makeBuffers(3, 12);
  library.addTable({{0, 5, 1}, {7, 12, 2}});
  library.addTable({{0, 12, 0}});
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    for (int i = 0; i < 12; ++i)
      dataOf(step, Full)[i] = 100 * i;
    expectOk(launch(step, Mark, {Shard}, 0, true));
    expectOk(launch(step, Add, {Full, Shard}, 1, true));
    expectOk(launch(step, Mark, {Other}, 0, true));
    const double marks[] = {1, 1, 1, 1, 1, 0, 0, 2, 2, 2, 2, 2};
    for (int i = 0; i < 12; ++i) {
      bool own = i / 4 == rank;
      EXPECT_EQ(dataOf(step, Other)[i], own ? marks[i] : 0) << i;
      if (own) {
        EXPECT_EQ(dataOf(step, Shard)[i - 4 * rank], marks[i] + 100 * i) << i;
      }
    }
  });
}

TEST(Launch, NothingToDoIsNoLaunch) {
  LibraryBuilder library = makeBuffers(2, 4);
  library.addTable({{0, 2, 1}});
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    slotsOf(step)[3] = 7;
    expectOk(launch(step, Mark, {Shard}, 0, true));
    expectOk(launch(step, Sum, {Shard}, 0, true, 3));
    EXPECT_EQ(countersOf(runtimeOf(step)).launches, rank == 0 ? 2 : 0);
    EXPECT_EQ(slotsOf(step)[3], rank == 0 ? 2 : 0);
  });
}

// Values whose sum depends on the order, and 1, 2 or 4 threads.
TEST(Launch, ThreadsDoNotChangeResults) {
  int64_t elements = 5 * 32768 + 77;
  LibraryBuilder library = makeBuffers(1, elements);
  library.addTable({{0, elements, 1}});
  library.addTable({{0, 5000, 1}, {5000, 100001, 2}, {100001, elements, 3}});
  // 41 partial sums: lanes 0 to 8 get two, and then lanes are folded.
  double lanes[32] = {};
  for (int64_t block = 0; block < elements; block += 4096) {
    double partial = 0;
    for (int64_t i = block; i < std::min(elements, block + 4096); ++i)
      partial += std::sin(double(i));
    lanes[block / 4096 % 32] += partial;
  }
  for (int half : {16, 8, 4, 2, 1})
    for (int i = 0; i < half; ++i)
      lanes[i] += lanes[i + half];
  double expected = lanes[0];
  for (int32_t threads : {1, 2, 4}) {
    Options options;
    options.threads = threads;
    runSteps(
        library.get(),
        [&](int32_t, zero_rt_step *step) {
          for (int64_t i = 0; i < elements; ++i)
            dataOf(step, Full)[i] = std::sin(double(i));
          expectOk(launch(step, Sum, {Full}, 0, false, 0));
          EXPECT_EQ(slotsOf(step)[0], expected) << threads;
          expectOk(launch(step, Mark, {Other}, 1, false));
          for (int64_t i = 0; i < elements; ++i)
            ASSERT_EQ(dataOf(step, Other)[i], i < 5000     ? 1
                                              : i < 100001 ? 2
                                                           : 3);
        },
        options);
  }
}

TEST(Launch, RefusesWhatMakesNoSense) {
  LibraryBuilder library = makeBuffers(2, 16384);
  library.addTable({{0, 16384, 1}});
  library.addTable({{0, 8192, 1}, {8192, 16384, 1}});
  library.addTable({{100, 16384, 1}});
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    auto refuses = [](zero_rt_status status, const char *text) {
      expectStatus(ZERO_RT_INTERNAL, status, text);
    };
    refuses(launch(step, Mark, {Shard}, 0, false),
            "launch: operand 'shard' is sharded and the launch is not");
    refuses(launch(step, 3, {Full}, 0, false), "kernel 3 is out of range");
    refuses(launch(step, Mark, {Full}, 3, false), "table 3 is out of range");
    refuses(launch(step, Mark, {9}, 0, false), "buffer 9 is out of range");
    refuses(launch(step, Sum, {Full}, 1, false, 0),
            "a reducing kernel needs 1 segment, its table has 2");
    refuses(launch(step, Sum, {Full}, 0, false, 4), "scalar slots [4, 5) of 4");
    refuses(launch(step, Sum, {Full}, 2, false, 0),
            "begins at element 100, which is no multiple of 4096");
    const int32_t operand = Full;
    const zero_rt_calls &calls = callsOf(step);
    refuses(calls.launch(step, Mark, &operand, 1, 0, 8192, -1, -1,
                         ZERO_RT_STREAM_COMPUTE),
            "operand 'full' has 16384 elements, expected 8192");
    refuses(calls.launch(step, Mark, nullptr, 1, 0, 16384, -1, -1,
                         ZERO_RT_STREAM_COMPUTE),
            "bad list of operands");
    refuses(calls.launch(step, Mark, &operand, 1, 0, 16383, 0, -1,
                         ZERO_RT_STREAM_COMPUTE),
            "16383 elements are not a multiple of 2 ranks");
    refuses(calls.launch(step, Mark, &operand, 1, 0, 16384, 1, -1,
                         ZERO_RT_STREAM_COMPUTE),
            "axis set 1 is out of range");
    refuses(calls.run_scalars(step, 0), "program 0 is out of range");
    refuses(calls.run_scalars(step, -1), "program -1 is out of range");
  });
}

} // namespace
