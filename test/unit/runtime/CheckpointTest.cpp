//===- CheckpointTest.cpp - State in files --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoints.h"
#include "Ranks.h"
#include "TrainStep.h"

#include <filesystem>
#include <mutex>

using namespace zero_rt::test;

namespace {

using Names = std::vector<std::string>;

const StateLayout kLayouts[] = {
    {1},
    {2},
    {3},
    {4},
    {2, /*isSharded=*/false},
    {4, /*isSharded=*/false},
    {3, /*isSharded=*/true, /*isSplit=*/true},
    {4, /*isSharded=*/false, /*isSplit=*/true},
};

} // namespace

// Bits that no rounding gives, nan among them.
TEST(Checkpoint, AnyLayoutLoadsWhatAnyOtherSaves) {
  for (bool hasMaster : {true, false})
    for (StateLayout from : kLayouts) {
      TemporaryFolder folder;
      from.hasMaster = hasMaster;
      saveState(makeStateStep(from).get(), folder.at(), 1, 300);
      for (StateLayout to : kLayouts) {
        to.hasMaster = hasMaster;
        SCOPED_TRACE(std::to_string(from.ranks) + " to " +
                     std::to_string(to.ranks));
        expectLoads(makeStateStep(to).get(), folder.at(), 1, 300);
      }
    }
}

TEST(Checkpoint, PipelineStagesLoadWhatOthersSave) {
  StagedStep two(1), four(2);
  LibraryBuilder one = makeStateStep({1}), three = makeStateStep({3});
  const zero_rt_library *steps[] = {&two.get(), &four.get(), &one.get(),
                                    &three.get()};
  for (const zero_rt_library *from : steps) {
    TemporaryFolder folder;
    saveState(*from, folder.at(), 1);
    for (const zero_rt_library *to : steps)
      expectLoads(*to, folder.at(), 1);
  }
}

// Tensor parallelism divides parameters into parts, which stay what they are.
TEST(Checkpoint, PartsAreValuesOfTheirOwn) {
  auto make = [](int64_t ranks, int64_t parts, bool isSharded = true) {
    StateLayout layout = {ranks, isSharded};
    layout.parts = parts;
    return makeStateStep(layout);
  };
  TemporaryFolder folder;
  saveState(make(4, 2).get(), folder.at(), 1);
  expectLoads(make(2, 2).get(), folder.at(), 1);
  expectLoads(make(4, 2).get(), folder.at(), 1);
  expectLoads(make(6, 2, /*isSharded=*/false).get(), folder.at(), 1);
  expectDoesNotLoad(make(3, 3).get(), folder.at(),
                    "has part 'tp=0/2', and this step has part 'tp=0/3'; load "
                    "it with the same sizes of the axes");
  expectDoesNotLoad(make(2, 1).get(), folder.at(),
                    "has part 'tp=0/2', and this step has part ''");
}

// What follows a load has the bits of what follows the save.
TEST(Checkpoint, TrainingGoesOnWithTheSameBits) {
  TemporaryFolder folder;
  LibraryBuilder library = makeTrainStep(3);
  auto train = [](zero_rt_step *step, float value) {
    expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    passAll(step, value);
    expectOk(applyStep(step, 0.125));
  };
  std::mutex mutex;
  std::vector<std::vector<uint16_t>> expected(3);
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    for (int32_t p = 0; p < NumTrainParameters; ++p)
      bindParameter(step, p, float(p));
    train(step, 0.3f);
    expectOk(save(step, folder.at(), 1));
    train(step, 0.7f);
    train(step, 0.1f);
    std::lock_guard<std::mutex> lock(mutex);
    expected[size_t(rank)] = parameterBits(step);
  });
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    expectOk(load(step, folder.at()));
    train(step, 0.7f);
    train(step, 0.1f);
    EXPECT_EQ(parameterBits(step), expected[size_t(rank)]);
  });
}

TEST(Checkpoint, TheNextOneReplacesIt) {
  TemporaryFolder folder;
  LibraryBuilder library = makeStateStep({2});
  saveState(library.get(), folder.at(), 1, 10);
  EXPECT_EQ(namesIn(folder.at()), Names({"checkpoint.json", "save-1"}));
  EXPECT_EQ(namesIn(folder.at("save-1")),
            Names({"rank-00000.safetensors", "rank-00001.safetensors"}));
  // Other files stay, and names like those of a checkpoint, too.
  writeText(folder.at("notes.txt"), "mine");
  writeText(folder.at("save-01"), "mine");
  saveState(makeStateStep({1}).get(), folder.at(), 2, 20);
  EXPECT_EQ(namesIn(folder.at()),
            Names({"checkpoint.json", "notes.txt", "save-01", "save-2"}));
  EXPECT_EQ(namesIn(folder.at("save-2")), Names({"rank-00000.safetensors"}));
  expectLoads(library.get(), folder.at(), 2, 20);
}

// Ranks divide what several of them have.
TEST(Checkpoint, EachElementIsWrittenOnce) {
  for (StateLayout layout : kLayouts) {
    TemporaryFolder folder;
    saveState(makeStateStep(layout).get(), folder.at(), 1);
    size_t bytes = 0, headers = 0;
    for (const std::string &name : namesIn(folder.at("save-1"))) {
      std::string text = readText(folder.at("save-1/" + name));
      uint64_t header = 0;
      memcpy(&header, text.data(), 8);
      EXPECT_EQ(header % 8, 0u);
      headers += 8 + header;
      bytes += text.size();
    }
    // 22 elements in bf16 and in f32, and two scalars.
    EXPECT_EQ(bytes - headers, 22u * (2 + 4) + 2 * 8);
  }
}

TEST(Checkpoint, TheIndexSaysWhatItIs) {
  TemporaryFolder folder;
  LibraryBuilder library = makeStateStep({2});
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    passAll(step);
    expectOk(applyStep(step));
    expectOk(save(step, folder.at(), 1));
  });
  std::string index = readText(folder.at("checkpoint.json"));
  for (const char *text :
       {"\"format\": \"zero-opt checkpoint\"", "\"version\": 2",
        "\"number\": 1,", "\"step\": \"train\"",
        "\"plan_hash\": \"0000000000001234\"", "\"mesh\": {\"dp\": 2}",
        "\"scalars\": {\"steps\": 1, \"loss_scale.scale\": 1024}",
        "\"loss_scale\": 1024", "\"checksum\": \""})
    EXPECT_NE(index.find(text), std::string::npos) << text << "\n" << index;
}

TEST(Checkpoint, ChecksItsArguments) {
  TemporaryFolder folder;
  LibraryBuilder library = makeStateStep({2});
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.save(step, nullptr, 0),
                 "save failed on rank");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.save(step, nullptr, 0),
                 "folder is null");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.load(step, "", nullptr),
                 "folder is empty");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, save(step, folder.at(), -1),
                 "number is -1, expected at least 0");
    expectStatus(ZERO_RT_MISMATCH, save(step, folder.at(), rank),
                 "rank 1 saves number 1, rank 0 number 0");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, load(step, folder.at()),
                 "No such file or directory");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, save(step, folder.at("a/b/c")),
                 "save failed on rank 0: cannot create folder '");
    // The error of one rank is that of both.
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.save(step, rank ? nullptr : folder.at().c_str(), 0),
                 "save failed on rank 1: folder is null");
    // Each rank would write to a folder of its own.
    std::string other = folder.at() + (rank ? "-other" : "");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, save(step, other),
                 "save failed on rank 1: cannot create '");
    expectOk(calls.begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    expectStatus(ZERO_RT_PROTOCOL, save(step, folder.at()),
                 "only allowed in state 'idle'");
    expectStatus(ZERO_RT_PROTOCOL, load(step, folder.at()),
                 "only allowed in state 'idle'");
    expectOk(calls.discard(step));
    expectOk(save(step, folder.at()));
  });
  // Folders of the saves that failed are gone.
  EXPECT_EQ(namesIn(folder.at()).size(), 2u);
}

// A master of which each rank has a slice leaves parameters stale.
TEST(Checkpoint, StateThatIsHalfWrittenIsNotSaved) {
  TemporaryFolder folder;
  runSteps(makeStateStep({2}).get(), [&](int32_t, zero_rt_step *step) {
    auto entry = sized<zero_rt_state_entry>();
    int64_t e = 0;
    do
      expectOk(callsOf(step).state_describe(step, e++, &entry));
    while (std::string(entry.role) != "master");
    std::vector<float> values(size_t(entry.end - entry.begin));
    expectOk(callsOf(step).state_write(step, e - 1, values.data(),
                                       int64_t(values.size() * sizeof(float))));
    expectStatus(ZERO_RT_PROTOCOL, save(step, folder.at()),
                 "write its 'parameter', too");
  });
}

TEST(Checkpoint, TwoValuesOfOneNameAreRefused) {
  TemporaryFolder folder;
  LibraryBuilder library = makeStateStep({1});
  library.addState("tied.master", -1, LossScale);
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    expectStatus(ZERO_RT_INVALID_ARGUMENT, save(step, folder.at()),
                 "two values of the state have the name 'tied.master'");
  });
}

// The files would not be JSON.
TEST(Checkpoint, NamesThatAreNotUtf8AreRefused) {
  auto expect = [](LibraryBuilder library, const char *text) {
    TemporaryFolder folder;
    runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
      expectStatus(ZERO_RT_UNSUPPORTED, save(step, folder.at()), text);
    });
    EXPECT_FALSE(std::filesystem::exists(folder.at()));
  };
  LibraryBuilder parameter = makeStateStep({2});
  parameter.parameters[Bias].name = parameter.addText("fc1\xFF");
  expect(parameter,
         "the name 'fc1\xFF.parameter' is not UTF-8, as a checkpoint "
         "needs; rename the parameter or parameter group");
  LibraryBuilder axis = makeStateStep({2});
  axis.axes[0].name = axis.addText("\xE2\x82");
  expect(axis,
         "the name '\xE2\x82' is not UTF-8, as a checkpoint needs; rename "
         "the axis");
}
