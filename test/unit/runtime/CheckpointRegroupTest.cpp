//===- CheckpointRegroupTest.cpp - Sums of gradients on other ranks -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checkpoint between two backward passes is loaded on another number of
// ranks. Ranks are powers of two and gradients are whole numbers, so all sums
// are exact.
//
//===----------------------------------------------------------------------===//

#include "Checkpoints.h"
#include "Ranks.h"
#include "TrainStep.h"

#include <cmath>
#include <mutex>

using namespace zero_rt::test;

namespace {

/// All ranks together work on so many batches in a step.
constexpr int64_t numBatches = 16;

/// By what callers multiply gradients: powers of ranks and of backward passes.
struct Prescaling {
  int ranks;
  int passes;

  double factor(int64_t numRanks) const {
    return std::pow(double(numRanks), ranks) *
           std::pow(double(numBatches / numRanks), passes);
  }
};

LibraryBuilder makeStep(int64_t ranks, Prescaling scaling = {0, 0}) {
  LibraryBuilder library = makeTrainStep(ranks, /*isResumable=*/true);
  library.batchRanks = ranks;
  zero_rt_accumulator_row &row = library.accumulators[0];
  row.numerator = scaling.ranks > 0 ? ranks : 1;
  row.denominator = scaling.ranks < 0 ? ranks : 1;
  row.passes_power = scaling.passes;
  return library;
}

/// Makes the backward passes on batches [begin, end), of which ranks take
/// turns. `extra` has gradients of the first half only.
void pass(int32_t rank, int64_t ranks, zero_rt_step *step, int64_t begin,
          int64_t end, Prescaling scaling) {
  for (int64_t batch = begin + rank; batch < end; batch += ranks) {
    auto value = float(double(batch + 1) * scaling.factor(ranks));
    expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    for (int32_t p = 0; p < NumTrainParameters; ++p)
      if (p != Extra || batch < numBatches / 2)
        expectOk(passPieces(step, p, value));
    expectOk(callsOf(step).accumulate(step));
  }
}

std::vector<uint16_t> finish(zero_rt_step *step) {
  expectOk(applyStep(step, 0.125));
  return parameterBits(step);
}

} // namespace

TEST(CheckpointRegroup, AsManyBatchesMakeTheStep) {
  constexpr int64_t done = numBatches / 2;
  for (Prescaling scaling : {Prescaling{0, 0}, {-1, 0}, {0, -1}, {1, -1}})
    for (int64_t from : {1, 2, 4, 8})
      for (int64_t to : {1, 2, 4, 8}) {
        SCOPED_TRACE(testing::Message()
                     << from << " to " << to << " ranks, ranks^"
                     << scaling.ranks << " passes^" << scaling.passes);
        LibraryBuilder saving = makeStep(from, scaling);
        LibraryBuilder loading = makeStep(to, scaling);
        std::vector<uint16_t> expected;
        std::mutex mutex;
        runSteps(loading.get(), [&](int32_t rank, zero_rt_step *step) {
          bindParameters(step);
          pass(rank, to, step, 0, numBatches, scaling);
          std::vector<uint16_t> bits = finish(step);
          std::lock_guard<std::mutex> lock(mutex);
          expected = bits;
        });
        TemporaryFolder folder, again;
        runSteps(saving.get(), [&](int32_t rank, zero_rt_step *step) {
          bindParameters(step);
          pass(rank, from, step, 0, done, scaling);
          expectOk(save(step, folder.at(), 1));
        });
        runSteps(loading.get(), [&](int32_t rank, zero_rt_step *step) {
          expectOk(load(step, folder.at()));
          int64_t passes = 0;
          expectOk(callsOf(step).backward_passes(step, &passes));
          EXPECT_EQ(passes, done / to);
          // What is loaded can be saved, and loaded again.
          expectOk(save(step, again.at(), 2));
          expectOk(callsOf(step).discard(step));
          expectOk(load(step, again.at()));
          pass(rank, to, step, done, numBatches, scaling);
          EXPECT_EQ(finish(step), expected);
        });
      }
}

TEST(CheckpointRegroup, BatchesThatRanksCannotShareAreRefused) {
  TemporaryFolder folder;
  runSteps(makeStep(2).get(), [&](int32_t rank, zero_rt_step *step) {
    bindParameters(step);
    pass(rank, 2, step, 0, 6, {0, 0});
    expectOk(save(step, folder.at(), 1));
  });
  runSteps(makeStep(4).get(), [&](int32_t, zero_rt_step *step) {
    expectStatus(ZERO_RT_INVALID_ARGUMENT, load(step, folder.at()),
                 "checkpoint has the gradients of 3 backward passes on 2 "
                 "ranks, and no number of them on 4 ranks has as many batches; "
                 "load the begin of that step");
    expectOk(callsOf(step).load_begin(step, folder.at().c_str(), nullptr));
  });
  runSteps(makeStep(3).get(), [&](int32_t, zero_rt_step *step) {
    expectOk(load(step, folder.at()));
    int64_t passes = 0;
    expectOk(callsOf(step).backward_passes(step, &passes));
    EXPECT_EQ(passes, 2);
    expectOk(callsOf(step).discard(step));
  });
}

// A factor of a job on many ranks may be no number of 62 bits.
TEST(CheckpointRegroup, FactorsThatAreNotKnownLoadTheBegin) {
  TemporaryFolder folder;
  LibraryBuilder unknown = makeStep(2);
  unknown.accumulators[0].numerator = 0;
  unknown.accumulators[0].denominator = 0;
  runSteps(unknown.get(), [&](int32_t rank, zero_rt_step *step) {
    bindParameters(step);
    pass(rank, 2, step, 0, 4, {0, 0});
    expectOk(save(step, folder.at(), 1));
  });
  LibraryBuilder known = makeStep(2);
  for (LibraryBuilder *library : {&unknown, &known})
    runSteps(library->get(), [&](int32_t, zero_rt_step *step) {
      expectStatus(ZERO_RT_INVALID_ARGUMENT, load(step, folder.at()),
                   "has a factor that is not known, and cannot be compared; "
                   "load the begin of that step");
      expectOk(callsOf(step).load_begin(step, folder.at().c_str(), nullptr));
    });
}
