//===- CheckpointFolderTest.cpp - What else is in the folder of a save ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoints.h"
#include "Ranks.h"
#include "TrainStep.h"
#include "checkpoint/files.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

/// A rename is done, and reported as failed, as over a network.
int renameAndFail(const char *operation, const std::string &path) {
  if (std::string(operation) != "rename")
    return 0;
  std::string to = path.substr(0, path.rfind(".new-"));
  return std::rename(path.c_str(), to.c_str()) ? 0 : ENOENT;
}

std::string fileOf(const TemporaryFolder &folder, const std::string &save) {
  return folder.at(save + "/rank-00000.safetensors");
}

} // namespace

TEST(CheckpointFolder, FilesOfOthersStay) {
  TemporaryFolder folder;
  LibraryBuilder library = makeStateStep({1});
  std::filesystem::create_directories(folder.at("save-1/@eaDir"));
  writeText(folder.at("save-1/thesis.tex"), "text");
  writeText(folder.at("save-1/rank-00000.safetensors"), "cut off");
  std::filesystem::create_directory(folder.at("mine"));
  writeText(folder.at("mine/rank-00000.safetensors"), "mine");
  std::filesystem::create_directory_symlink(folder.at("mine"),
                                            folder.at("save-2"));
  std::filesystem::create_directory(folder.at("save-999999999999999999"));
  for (uint64_t seed : {1, 2})
    saveState(library.get(), folder.at(), seed, int64_t(seed));
  expectLoads(library.get(), folder.at(), 2, 2);
  EXPECT_EQ(namesIn(folder.at("save-1")),
            (std::vector<std::string>{"@eaDir", "thesis.tex"}));
  EXPECT_EQ(readText(folder.at("mine/rank-00000.safetensors")), "mine");
  EXPECT_EQ(
      namesIn(folder.at()),
      (std::vector<std::string>{"checkpoint.json", "mine", "save-1", "save-2",
                                "save-4", "save-999999999999999999"}));
}

TEST(CheckpointFolder, HasNoPlaceForMore) {
  TemporaryFolder folder;
  LibraryBuilder library = makeStateStep({1});
  std::filesystem::create_directories(folder.at("save-999999999999999998"));
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    expectStatus(ZERO_RT_INVALID_ARGUMENT, save(step, folder.at()),
                 "has no place for another save; remove it");
  });
}

TEST(CheckpointFolder, ARenameThatIsDoneAndFails) {
  TemporaryFolder folder;
  LibraryBuilder library = makeStateStep({2});
  saveState(library.get(), folder.at(), 1, 1);
  fileFault = renameAndFail; // both ranks read it, and only rank 0 renames
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    fillState(step, 2);
    expectStatus(ZERO_RT_INVALID_ARGUMENT, save(step, folder.at(), 2),
                 "cannot rename");
  });
  fileFault = nullptr;
  expectLoads(library.get(), folder.at(), 2, 2);
  saveState(library.get(), folder.at(), 3, 3);
  expectLoads(library.get(), folder.at(), 3, 3);
  EXPECT_EQ(namesIn(folder.at()).size(), 2u);
}

TEST(CheckpointFolder, ARankThatSeesAnother) {
  TemporaryFolder folder, other;
  LibraryBuilder alone = makeStateStep({1}), library = makeStateStep({2});
  saveState(library.get(), folder.at(), 1, 1);
  // There the next save would have the same number.
  saveState(alone.get(), other.at(), 9, 1);
  std::filesystem::create_directory(other.at("save-2"));
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    fillState(step, 2);
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 save(step, rank ? other.at() : folder.at(), 2),
                 "all ranks must see one folder");
  });
  expectLoads(library.get(), folder.at(), 1, 1);
}

// The other one saves while this one writes.
TEST(CheckpointFolder, TwoProgramsThatSave) {
  TemporaryFolder folder, other;
  LibraryBuilder library = makeStateStep({1});
  saveState(library.get(), folder.at(), 1, 1);
  for (uint64_t seed : {7, 8, 9})
    saveState(library.get(), other.at(), seed, 2);
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    fillState(step, 2);
    expectOk(callsOf(step).save_begin(step, folder.at().c_str(), 2));
    std::filesystem::copy(other.at("save-3"), folder.at("save-3"));
    std::filesystem::rename(other.at("checkpoint.json"),
                            folder.at("checkpoint.json"));
    expectStatus(ZERO_RT_INVALID_ARGUMENT, callsOf(step).save_end(step),
                 "another program saves to it; give each a folder of its own");
  });
  expectLoads(library.get(), folder.at(), 9, 2);
}

TEST(CheckpointFolder, AnEarlierSaveLeavesALaterOne) {
  TemporaryFolder folder;
  LibraryBuilder library = makeStateStep({1});
  saveState(library.get(), folder.at(), 1, 1);
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    fillState(step, 2);
    expectOk(callsOf(step).save_begin(step, folder.at().c_str(), 2));
    // Of a program that has not replaced the index yet.
    std::filesystem::create_directory(folder.at("save-3"));
    writeText(fileOf(folder, "save-3"), "half");
    expectOk(callsOf(step).save_end(step));
  });
  EXPECT_EQ(readText(fileOf(folder, "save-3")), "half");
  expectLoads(library.get(), folder.at(), 2, 2);
}

// As of a step that was never loaded.
TEST(CheckpointFolder, AWriteOfAParameterAfterALoad) {
  TemporaryFolder folder;
  LibraryBuilder library = makeStateStep({1});
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    fillState(step, 1);
    expectOk(save(step, folder.at()));
    expectOk(load(step, folder.at()));
    int64_t count = 0;
    expectOk(callsOf(step).state_count(step, &count));
    int64_t parameter = -1, master = -1;
    for (int64_t i = 0; i < count; ++i) {
      auto entry = sized<zero_rt_state_entry>();
      expectOk(callsOf(step).state_describe(step, i, &entry));
      if (entry.parameter == Weight && std::string(entry.role) == "parameter")
        parameter = i;
      if (entry.parameter == Weight && std::string(entry.role) == "master")
        master = i;
    }
    ASSERT_GE(parameter, 0);
    ASSERT_GE(master, 0);
    auto described = sized<zero_rt_state_entry>();
    expectOk(callsOf(step).state_describe(step, parameter, &described));
    size_t elements = size_t(described.end - described.begin);
    std::vector<uint16_t> twos(elements, 0x4000);
    expectOk(callsOf(step).state_write(step, parameter, twos.data(),
                                       int64_t(2 * elements)));
    std::vector<float> masters(elements);
    expectOk(callsOf(step).state_read(step, master, masters.data(),
                                      int64_t(4 * elements)));
    EXPECT_EQ(masters, std::vector<float>(elements, 2));
  });
}
