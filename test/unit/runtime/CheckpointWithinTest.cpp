//===- CheckpointWithinTest.cpp - Checkpoints within a step ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoints.h"
#include "Ranks.h"
#include "SealedCheckpoint.h"
#include "TrainStep.h"
#include "checkpoint/inspect.h"

#include <filesystem>
#include <mutex>

using namespace zero_rt::test;

namespace {

LibraryBuilder makeResumableStep(int64_t ranks) {
  return makeTrainStep(ranks, /*isResumable=*/true);
}

void backward(zero_rt_step *step, float value) {
  expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
  passAll(step, value);
}

void accumulate(zero_rt_step *step, float value) {
  backward(step, value);
  expectOk(callsOf(step).accumulate(step));
}

int64_t passesOf(zero_rt_step *step) {
  int64_t count = -1;
  expectOk(callsOf(step).backward_passes(step, &count));
  return count;
}

void trainAndSave(const zero_rt_library &library, const std::string &folder) {
  runSteps(library, [&](int32_t rank, zero_rt_step *step) {
    bindParameters(step);
    accumulate(step, 0.3f + float(rank));
    accumulate(step, 0.7f);
    expectOk(save(step, folder, 7));
  });
}

/// A checkpoint of two ranks behind two backward passes.
class WithinStep : public testing::Test, protected SealedCheckpoint {
protected:
  WithinStep() : SealedCheckpoint(makeResumableStep(2), trainAndSave) {}

  void expectRefused(const std::string &text) {
    runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
      bindParameters(step);
      std::vector<uint16_t> before = parameterBits(step);
      expectStatus(ZERO_RT_INVALID_ARGUMENT, load(step, folder.at()),
                   text.c_str());
      EXPECT_EQ(parameterBits(step), before);
      EXPECT_EQ(passesOf(step), 0);
    });
  }
};

} // namespace

TEST_F(WithinStep, TrainingGoesOnWithTheSameBits) {
  std::mutex mutex;
  std::vector<std::vector<uint16_t>> expected(2);
  auto finish = [](int32_t rank, zero_rt_step *step) {
    backward(step, 0.1f * float(rank + 1));
    expectOk(applyStep(step, 0.125));
    EXPECT_EQ(passesOf(step), 0);
    // The next step has no trace of it.
    backward(step, 0.9f);
    expectOk(applyStep(step, 0.125));
  };
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    bindParameters(step);
    accumulate(step, 0.3f + float(rank));
    accumulate(step, 0.7f);
    finish(rank, step);
    std::lock_guard<std::mutex> lock(mutex);
    expected[size_t(rank)] = parameterBits(step);
  });
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    int64_t number = 0;
    expectOk(load(step, folder.at(), &number));
    EXPECT_EQ(number, 7);
    EXPECT_EQ(passesOf(step), 2);
    finish(rank, step);
    EXPECT_EQ(parameterBits(step), expected[size_t(rank)]);
  });
}

TEST_F(WithinStep, TheStepMayBeAppliedOrDiscardedAtOnce) {
  std::mutex mutex;
  std::vector<std::vector<uint16_t>> expected(2);
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    bindParameters(step);
    accumulate(step, 0.3f + float(rank));
    accumulate(step, 0.7f);
    expectOk(applyStep(step, 0.125));
    std::lock_guard<std::mutex> lock(mutex);
    expected[size_t(rank)] = parameterBits(step);
  });
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    expectOk(load(step, folder.at()));
    std::vector<uint16_t> before = parameterBits(step);
    expectOk(callsOf(step).discard(step));
    EXPECT_EQ(parameterBits(step), before);
    EXPECT_EQ(passesOf(step), 0);
    expectOk(load(step, folder.at()));
    expectOk(applyStep(step, 0.125));
    EXPECT_EQ(parameterBits(step), expected[size_t(rank)]);
  });
}

// The copies of save_begin are those of its moment.
TEST_F(WithinStep, TrainingGoesOnWhileFilesAreWritten) {
  TemporaryFolder other;
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    expectOk(load(step, folder.at()));
    expectOk(callsOf(step).save_begin(step, other.at().c_str(), 7));
    accumulate(step, 0.5f);
    expectOk(callsOf(step).save_end(step));
    expectOk(callsOf(step).discard(step));
  });
  for (const char *file :
       {"save-1/rank-00000.safetensors", "save-1/rank-00001.safetensors"})
    EXPECT_EQ(readText(folder.at(file)), readText(other.at(file)));
}

// Where save_end comes too early, the files stay, and a later call makes them
// the checkpoint.
TEST_F(WithinStep, ASaveThatCannotEndNowEndsLater) {
  TemporaryFolder other;
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    bindParameters(step);
    expectOk(callsOf(step).save_begin(step, other.at().c_str(), 1));
    backward(step, 1);
    expectStatus(ZERO_RT_PROTOCOL, callsOf(step).save_end(step),
                 "a backward pass is open; call accumulate, apply or discard "
                 "first");
    expectOk(callsOf(step).accumulate(step));
    expectOk(callsOf(step).save_end(step));
    expectOk(callsOf(step).discard(step));
    expectOk(load(step, other.at()));
  });
}

TEST_F(WithinStep, WithoutBatchesOtherNumbersOfRanksLoadTheBegin) {
  for (int64_t ranks : {1, 2, 3})
    runSteps(makeResumableStep(ranks).get(), [&](int32_t, zero_rt_step *step) {
      if (ranks != 2)
        expectStatus(
            ZERO_RT_INVALID_ARGUMENT, load(step, folder.at()),
            ("checkpoint has gradients of 2 ranks over 'dp' within a step, and "
             "this step has " +
             std::to_string(ranks) +
             "; 'normalize' of this step does not say which ranks have "
             "batches, or that they weigh the same on other ranks, so load it "
             "on as many, or load the begin of that step")
                .c_str());
      int64_t number = 0;
      expectOk(callsOf(step).load_begin(step, folder.at().c_str(), &number));
      EXPECT_EQ(number, 7);
      EXPECT_EQ(passesOf(step), 0);
      std::vector<uint16_t> loaded = parameterBits(step);
      bindParameters(step);
      EXPECT_EQ(parameterBits(step), loaded);
    });
}

TEST_F(WithinStep, AStepOfOneBackwardPassLoadsTheBegin) {
  runSteps(makeTrainStep(2).get(), [&](int32_t, zero_rt_step *step) {
    expectStatus(ZERO_RT_INVALID_ARGUMENT, load(step, folder.at()),
                 "checkpoint has the gradients of 2 backward passes, and this "
                 "step takes one; load the begin of that step");
    expectOk(callsOf(step).load_begin(step, folder.at().c_str(), nullptr));
  });
}

TEST_F(WithinStep, WhereNoneCanBeSavedSaysWhatToDo) {
  TemporaryFolder other;
  auto expectNot = [&](zero_rt_step *step, const char *text,
                       zero_rt_status status = ZERO_RT_PROTOCOL) {
    expectStatus(status, save(step, other.at()), text);
  };
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    bindParameters(step);
    backward(step, 1);
    expectNot(step, "a backward pass is open; call accumulate, apply or "
                    "discard first");
    expectOk(callsOf(step).accumulate(step));
    expectStatus(ZERO_RT_PROTOCOL, load(step, folder.at()),
                 "only allowed in state 'idle'; call apply or discard first");
    expectOk(measureStep(step));
    expectNot(step, "the step was measured; call apply or discard first");
    expectOk(callsOf(step).discard(step));
    // A gradient is missing.
    expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    passGradient(step, Bias);
    expectOk(callsOf(step).accumulate(step));
    expectNot(step, "the gradient of 'fc1.weight' did not arrive whole in "
                    "backward pass 1, so this step will be refused; call "
                    "discard first");
    expectOk(callsOf(step).discard(step));
    // Ranks have made different numbers of backward passes.
    accumulate(step, 1);
    if (rank == 1)
      accumulate(step, 1);
    expectNot(step, "rank 1 has made 2 backward passes, rank 0 1",
              ZERO_RT_MISMATCH);
    expectOk(callsOf(step).discard(step));
    EXPECT_FALSE(std::filesystem::exists(other.at("checkpoint.json")));
    expectOk(save(step, other.at()));
  });
  runSteps(makeTrainStep(2).get(), [&](int32_t, zero_rt_step *step) {
    accumulate(step, 1);
    expectNot(step, "save in state 'between': only allowed in state 'idle'");
  });
}

// Each rank may have gradients that others lack, as of the experts that it has.
TEST_F(WithinStep, EachRankHasArrivalsOfItsOwn) {
  library.accumulators[0].partial = 0;
  library.accumulators[0].arrives = 0;
  TemporaryFolder other, again;
  auto readArrivals = [](const TemporaryFolder &folder) {
    std::vector<std::string> errors;
    zero_rt::CheckpointSummary summary =
        zero_rt::inspectCheckpoint(folder.at(), /*readsData=*/true, errors);
    EXPECT_TRUE(errors.empty()) << testing::PrintToString(errors);
    std::vector<double> arrivals;
    for (const zero_rt::CheckpointValue &value : summary.values)
      if (value.name == "extra.gradient-arrivals")
        arrivals.push_back(value.scalar);
    return arrivals;
  };
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    bindParameters(step);
    expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    for (int32_t p = 0; p < NumTrainParameters; ++p)
      if (p != Extra || rank == 1)
        expectOk(passPieces(step, p, 1));
    expectOk(callsOf(step).accumulate(step));
    expectOk(save(step, other.at(), 1));
    expectOk(callsOf(step).discard(step));
    expectOk(load(step, other.at()));
    expectOk(save(step, again.at(), 1));
  });
  EXPECT_EQ(readArrivals(other), (std::vector<double>{0, 1}));
  EXPECT_EQ(readArrivals(again), (std::vector<double>{0, 1}));
}

TEST_F(WithinStep, AddendsAreCounted) {
  const std::string mine = " addend:0/2\"";
  const char *const noMetadata = "are not 'BEGIN END ELEMENTS CHECKSUM[ PART]";
  for (auto [to, message] :
       {std::pair(" addend:1/2\"", "of 'extra.gradient-arrivals'"),
        std::pair(" addend:0/3\"",
                  "is of another number of addends than another piece"),
        std::pair(" addend:0/1048577\"", noMetadata),
        std::pair(" addend:2/2\"", noMetadata),
        std::pair(" addend:-1/2\"", noMetadata),
        std::pair(" addend:0/0\"", noMetadata),
        std::pair(" addend:0\"", noMetadata),
        std::pair(" addend:dp=0/2\"", noMetadata),
        std::pair(" addend:0/2,\"", noMetadata),
        std::pair("\"",
                  "is of another number of addends than another piece")}) {
    std::string file = readText(first), whole = readText(index);
    putHeader(replaced(header(), mine, to), data());
    expectRefused(message);
    writeText(first, file);
    writeText(index, whole);
  }
}

TEST_F(WithinStep, FactorsAreChecked) {
  const std::string mine = "\"tied.gradient-sum\":\"";
  const char *const noMetadata = "are not 'BEGIN END ELEMENTS CHECKSUM[ PART]";
  for (auto [to, message] :
       {std::pair("0/2,0,0", noMetadata), std::pair("-1/-1,0,0", noMetadata),
        std::pair("1/2,9,0", noMetadata), std::pair("1/2,0,-9", noMetadata),
        std::pair("1/2,0", noMetadata), std::pair("1/2,0,0,", noMetadata),
        std::pair("1/99999999999999999999,0,0", noMetadata),
        std::pair("1/1,-1,0",
                  "has gradients that callers multiplied by passes^-1 * "
                  "tokens^0, expected passes^0 * tokens^0; load it with a step "
                  "that has the same 'prescaled'"),
        std::pair("1/1,0,1", "passes^0 * tokens^1, expected"),
        std::pair("0/0,0,0", "has a factor that is not known")}) {
    std::string file = readText(first), whole = readText(index);
    std::string text = header();
    text.insert(text.find('"', text.find(mine) + mine.size()),
                std::string(" prescaled:") + to);
    putHeader(text, data());
    expectRefused(message);
    writeText(first, file);
    writeText(index, whole);
  }
}

TEST_F(WithinStep, NumbersOfBackwardPassesAreChecked) {
  std::string whole = readText(index);
  const std::string passes = "\"backward_passes\": ";
  const std::string batchRanks = "\"batch_ranks\": ";
  for (auto [from, to, message] :
       {std::tuple(passes + "2", passes + "0",
                   "'backward_passes' must be a whole number of at least 1"),
        {passes + "2", passes + "67108865",
         "'backward_passes' is 67108865, expected at most 67108864"},
        {passes + "2", "\"x\": 2", "'backward_passes' must be a whole number"},
        {batchRanks + "0", batchRanks + "-1",
         "'batch_ranks' must be a whole number of at least 0"},
        {batchRanks + "0", batchRanks + "1048577",
         "'batch_ranks' is 1048577, expected at most 2"},
        {"\"mesh\": {\"dp\": 2}", "\"mesh\": {\"dp\": 0}",
         "'mesh' must have sizes of axes"},
        {"\"mesh\": {\"dp\": 2}", "\"mesh\": {\"dp\": 4}",
         "'files' must list a file for each of 4 ranks"},
        {"\"mesh\": {\"dp\": 2}", "\"mesh\": {\"dp\": 2, \"tp\": 1048576}",
         "'mesh' must have sizes of axes"}}) {
    seal(replaced(whole, from, to));
    expectRefused(message);
    writeText(index, whole);
  }
  seal(replaced(whole, "\"version\": 3", "\"version\": 2"));
  expectRefused("-arrivals', which this step does not have");
}

TEST_F(WithinStep, InspectionCountsAddends) {
  auto expectError = [&](const std::string &text) {
    std::vector<std::string> errors;
    zero_rt::CheckpointSummary summary =
        zero_rt::inspectCheckpoint(folder.at(), /*readsData=*/true, errors);
    EXPECT_NE(testing::PrintToString(errors).find(text), std::string::npos)
        << testing::PrintToString(errors);
    return summary.backwards;
  };
  EXPECT_EQ(expectError("{}"), 2);
  std::string file = readText(first), whole = readText(index);
  putHeader(replaced(header(), " addend:0/2\"", "\""), data());
  expectError("has 2 addends, which are not those of all ranks");
  writeText(first, file);
  seal(replaced(replaced(whole, "\"version\": 3", "\"version\": 2"),
                "\"backward_passes\": 2", "\"x\": 2"));
  EXPECT_EQ(expectError("and the index has no backward passes"), 0);
}
