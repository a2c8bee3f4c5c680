//===- CheckpointHostileTest.cpp - Damaged checkpoints are refused --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "SealedCheckpoint.h"
#include "TrainStep.h"
#include "checkpoint/inspect.h"

#include <algorithm>
#include <filesystem>
#include <functional>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

class HostileCheckpoint : public testing::Test, protected SealedCheckpoint {
protected:
  void expectRefused(const std::string &text,
                     zero_rt_status status = ZERO_RT_INVALID_ARGUMENT) {
    expectDoesNotLoad(library.get(), folder.at(), text, status);
  }

  /// Expects that the checkpoint at |path| has the errors |texts| without a
  /// step.
  static void expectInspected(const std::string &path,
                              const std::vector<const char *> &texts) {
    std::vector<std::string> errors;
    inspectCheckpoint(path, /*readsData=*/true, errors);
    for (const char *text : texts)
      EXPECT_TRUE(std::any_of(errors.begin(), errors.end(),
                              [&](const std::string &error) {
                                return error.find(text) != error.npos;
                              }))
          << text << " is none of " << testing::PrintToString(errors);
    EXPECT_EQ(errors.empty(), texts.empty());
  }

  void editIndex(const std::string &from, const std::string &to) {
    seal(replaced(readText(index), from, to));
  }

  void editHeader(const std::string &from, const std::string &to) {
    putHeader(replaced(header(), from, to), data());
  }
};

} // namespace

TEST_F(HostileCheckpoint, EveryByteAndEveryLengthAreGuarded) {
  runSteps(makeStateStep({1}).get(), [&](int32_t, zero_rt_step *step) {
    fillState(step, 2);
    for (const std::string &path : {index, first, second}) {
      const std::string text = readText(path);
      auto expect = [&](const std::string &damaged, size_t at) {
        writeText(path, damaged);
        expectStatus(ZERO_RT_INVALID_ARGUMENT, load(step, folder.at()),
                     "load failed on rank 0: '");
        ASSERT_FALSE(HasFailure()) << path << " byte " << at;
      };
      for (size_t at = 0; at < text.size() && !HasFailure(); ++at) {
        std::string damaged = text;
        damaged[at] = char(damaged[at] ^ 0x10);
        expect(damaged, at);
        expect(text.substr(0, at), at);
      }
      expect(text + " ", text.size());
      writeText(path, text);
    }
    EXPECT_TRUE(hasState(step, 2));
    expectOk(load(step, folder.at()));
    EXPECT_TRUE(hasState(step, 1));
  });
}

TEST_F(HostileCheckpoint, FilesAreNamed) {
  std::string text = readText(second);
  writeText(second, text.substr(0, text.size() - 1));
  expectRefused(second + "': it has " + std::to_string(text.size() - 1) +
                " bytes, expected " + std::to_string(text.size()) +
                ": it is truncated");
  text.back() ^= 1;
  writeText(second, text);
  expectRefused(second +
                "': the data of 'extra.parameter' [0, 5) has checksum");
}

TEST_F(HostileCheckpoint, AWholeOneHasNoErrors) {
  expectInspected(folder.at(), {});
}

TEST_F(HostileCheckpoint, SwappedFilesAreRefused) {
  std::filesystem::rename(first, first + "x");
  std::filesystem::rename(second, first);
  std::filesystem::rename(first + "x", second);
  expectRefused("it ");
}

TEST_F(HostileCheckpoint, AFileOfAnotherSaveIsRefused) {
  TemporaryFolder other;
  saveState(library.get(), other.at(), 2);
  std::filesystem::copy_file(other.at("save-1/rank-00001.safetensors"), second,
                             std::filesystem::copy_options::overwrite_existing);
  expectRefused(second + "': its header has checksum");
  expectInspected(folder.at(), {"': its header has checksum"});
}

TEST_F(HostileCheckpoint, AFileThatIsMissingIsNamed) {
  std::filesystem::remove(second);
  expectRefused("cannot open '" + second + "'");
  std::filesystem::create_directory(second);
  expectRefused(second + "' is no regular file");
}

// Of another step, whose checksums are right.
TEST_F(HostileCheckpoint, AnotherStepIsRefusedByName) {
  auto expect = [&](LibraryBuilder other, const char *text) {
    expectDoesNotLoad(other.get(), folder.at(), text);
  };
  LibraryBuilder renamed = makeStateStep({2});
  renamed.parameters[Bias].name = renamed.addText("fc2.bias");
  expect(renamed, "it has 'fc1.bias.master', which this step does not have; "
                  "load a checkpoint of a step with the same parameters");
  LibraryBuilder longer = makeStateStep({2});
  longer.parameters[Weight].elements = 11;
  expect(longer, "'fc1.weight.master' has 10 elements, expected 11");
  StateLayout layout = {1};
  layout.hasMaster = false;
  expect(makeStateStep(layout), "which this step does not have");
  LibraryBuilder wide = makeStateStep({1});
  wide.buffers[MasterBuffer].dtype = ZERO_RT_F64;
  expect(wide, "'fc1.weight.master' has dtype f32, expected f64");
  LibraryBuilder more = makeStateStep({1});
  more.addState("lr.step", -1, Norm);
  expect(more, "lacks elements of 'lr.step' [0, 1); load a checkpoint of a "
               "step with the same parameters");
  layout = {1};
  layout.numScalars = 1;
  expect(makeStateStep(layout), "it has 'loss_scale.scale', which this step");
}

TEST_F(HostileCheckpoint, AWrongIndexIsRefused) {
  const std::string text = readText(index);
  struct {
    const char *from, *to, *message;
    zero_rt_status status = ZERO_RT_INVALID_ARGUMENT;
  } cases[] = {
      {"zero-opt checkpoint", "another", "it is no index of a checkpoint"},
      {"\"version\": 2", "\"version\": 4",
       "it has version 4, this runtime reads 1 to 3; use a later runtime",
       ZERO_RT_UNSUPPORTED},
      {"\"save\": 1", "\"save\": 0", "'save' must be a whole number"},
      {"\"save\": 1", "\"save\": 9223372036854775807",
       "'save' is 9223372036854775807, expected at most 999999999999999998"},
      {"\"save\": 1", "\"save\": 2", "save-2/rank-00000.safetensors': No such"},
      {"\"number\": 0", "\"number\": 1.5", "'number' must be a whole number"},
      {"\"number\": 0", "\"number\": 99999999999999999999",
       "'number' must be a whole number"},
      {"\"number\"", "\"save\"", "key \"save\" a second time"},
      {"\"bytes\": ", "\"bytes\": -", "file 0 must have bytes"},
      {"\"bytes\": ", "\"bytes\": 1", " bytes, expected 1"},
      {"\"files\": [", "\"files\": {", "it is not JSON"},
      {"\"files\": [", "\"files\": [], \"other\": [", "'files' must list"},
      {"\"mesh\": {", "\"mesh\": {{{", "it is not JSON"},
  };
  for (auto &one : cases) {
    editIndex(one.from, one.to);
    expectRefused(one.message, one.status);
    writeText(index, text);
  }
  writeText(index, text.substr(0, 100));
  expectRefused("checkpoint.json': it does not end with the checksum");
  writeText(index, "");
  expectRefused("checkpoint.json': it is truncated");
  // The next save does not guess what is in the folder.
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    expectStatus(ZERO_RT_INVALID_ARGUMENT, save(step, folder.at()),
                 "it is truncated; remove the folder, or save to another one");
  });
}

// The index of a file that lists the same file twice, or one rank less.
TEST_F(HostileCheckpoint, ElementsTwiceOrNeverAreRefused) {
  std::string text = readText(index);
  size_t row = text.find("\n    {\"bytes\"");
  size_t next = text.find("\n    {\"bytes\"", row + 1);
  std::string one = text.substr(row, next - row);
  std::filesystem::copy_file(first, folder.at("save-1/rank-00002.safetensors"));
  std::string twice = text;
  twice.insert(text.find("\n  ],"), "," + one.substr(0, one.size() - 1));
  seal(replaced(twice, "{\"dp\": 2}", "{\"dp\": 3}"));
  expectRefused(
      "both have elements of 'fc1.weight.parameter' before element 10");
  expectInspected(folder.at(),
                  {"the elements of 'steps' [0, 1) before 1 are in two files"});
  std::string less = text;
  less.erase(next - 1, text.find("\n  ],") - next + 1);
  seal(replaced(less, "{\"dp\": 2}", "{\"dp\": 1}"));
  expectRefused("lacks elements of 'fc1.");
  expectInspected(
      folder.at(),
      {"elements 1 to 3 behind 'fc1.bias.master' [0, 1) are in no file"});
}

// A parameter that is in three files, without the second one.
TEST_F(HostileCheckpoint, AGapIsFound) {
  TemporaryFolder other;
  saveState(makeStateStep({6}).get(), other.at(), 1);
  index = other.at("checkpoint.json");
  std::string text = readText(index);
  size_t row = text.find("\n    {\"bytes\"", text.find("\n    {\"bytes\"") + 1);
  text.erase(row, text.find("\n    {\"bytes\"", row + 1) - row);
  seal(replaced(text, ": 6}", ": 5}"));
  auto rank = [&](int number) {
    return other.at("save-1/rank-0000" + std::to_string(number) +
                    ".safetensors");
  };
  for (int number = 1; number < 5; ++number)
    std::filesystem::rename(rank(number + 1), rank(number));
  expectDoesNotLoad(makeStateStep({1}).get(), other.at(),
                    "lacks elements of 'fc1.weight.parameter' [4, 10)");
  expectInspected(other.at(), {"elements 4 to 8 before 'fc1.weight.master' "
                               "[8, 10) are in no file"});
}

TEST_F(HostileCheckpoint, AHugeHeaderIsRefused) {
  std::string text = readText(first);
  for (uint64_t bytes : {uint64_t(text.size()), uint64_t(100'000'001),
                         uint64_t(1) << 63, ~uint64_t(0)}) {
    std::string damaged = text;
    memcpy(damaged.data(), &bytes, 8);
    writeText(first, damaged);
    expectRefused("its header has " + std::to_string(bytes) +
                  " bytes, expected at most ");
  }
}

// Checksums that are right say nothing about what they are of.
TEST_F(HostileCheckpoint, AWrongHeaderIsRefused) {
  const std::string oldIndex = readText(index), oldFirst = readText(first);
  const std::string master = "\"fc1.weight.master\":{\"dtype\":\"F32\",";
  struct {
    std::string from, to, message;
  } cases[] = {
      {"{\"__metadata__\"", "{\"metadata\"", "has no '__metadata__'"},
      {"{\"__metadata__\":{", "{\"__metadata__\":{{", "it is not JSON"},
      {"\"fc1.weight.master\":\"0 10", "\"fc1.weight.master\":\"0 x",
       "the metadata of 'fc1.weight.master' are not"},
      {"\"fc1.weight.master\":\"0 10", "\"fc1.weight.master\":\"10 0",
       "the metadata of 'fc1.weight.master' are not"},
      {"\"fc1.weight.master\":\"0 10", "\"fc1.weight.master\":\"0 11",
       "the metadata of 'fc1.weight.master' are not"},
      {"\"fc1.weight.master\":\"0 10 10", "\"fc1.weight.master\":\"1 10 10",
       "the metadata of 'fc1.weight.master' do not fit"},
      {"\"fc1.weight.master\":\"0 10 10", "\"fc1.weight.master\":\"0 10 12",
       "'fc1.weight.master' has 12 elements, expected 10"},
      {"\"fc1.weight.master\":\"", "\"other\":\"",
       "the metadata of 'fc1.weight.master' are not"},
      {master, "\"fc1.weight.master\":{\"dtype\":\"I8\",", "do not fit"},
      {master, "\"fc1.weight.master\":{\"dtype\":\"F64\",", "do not fit"},
      {master + "\"shape\":[10]", master + "\"shape\":[9]", "do not fit"},
      {master + "\"shape\":[10]", master + "\"shape\":[2,5]", "do not fit"},
      {master + "\"shape\":[10]", master + "\"shape\":10", "do not fit"},
      {master + "\"shape\":[10],\"data_offsets\":[16,56]",
       master + "\"shape\":[10],\"data_offsets\":[8,48]",
       "the data of 'fc1.weight.master' begins at byte 8, expected 16"},
      {master + "\"shape\":[10],\"data_offsets\":[16,56]",
       master + "\"shape\":[10],\"data_offsets\":[20,60]", "or there is a gap"},
      {master + "\"shape\":[10],\"data_offsets\":[16,56]",
       master + "\"shape\":[10],\"data_offsets\":[9223372036854775767,"
                "9223372036854775807]",
       "do not fit"},
      {master + "\"shape\":[10],\"data_offsets\":[16,56]",
       master + "\"shape\":[10],\"data_offsets\":[56,16]", "do not fit"},
  };
  for (auto &one : cases) {
    editHeader(one.from, one.to);
    expectRefused(one.message);
    writeText(index, oldIndex);
    writeText(first, oldFirst);
  }
  editHeader("\"fc1.weight.master\":\"0 10 10",
             "\"fc1.weight.master\":\"0 10 12");
  expectInspected(folder.at(),
                  {"elements 10 to 12 behind 'fc1.weight.master'"});
  writeText(index, oldIndex);
  writeText(first, oldFirst);
  editHeader("\"fc1.bias.master\":\"0 1 3", "\"fc1.bias.master\":\"0 1 4");
  expectInspected(folder.at(), {"'fc1.bias.master' [1, 3) has another dtype or "
                                "number of elements than 'fc1.bias.master'"});
  writeText(index, oldIndex);
  writeText(first, oldFirst);
  putHeader(header(), data() + "more");
  expectRefused("bytes, expected ");
  writeText(first, oldFirst);
  writeText(index, oldIndex);
  putHeader(std::string(1000, '['), data());
  expectRefused("nesting that is too deep");
}

TEST_F(HostileCheckpoint, RanksReadOneCheckpoint) {
  TemporaryFolder other;
  saveState(library.get(), other.at(), 2);
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    fillState(step, 3);
    expectStatus(ZERO_RT_MISMATCH, load(step, (rank ? other : folder).at()),
                 "rank 1 reads another checkpoint");
    EXPECT_TRUE(hasState(step, 3));
  });
}
