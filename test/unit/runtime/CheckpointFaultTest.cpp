//===- CheckpointFaultTest.cpp - A save that is cut off -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each operation on files of a save fails in turn, or is the last one that a
// process makes. The previous checkpoint or the new one is then in the folder.
//
//===----------------------------------------------------------------------===//

#include "Checkpoints.h"
#include "Ranks.h"
#include "TrainStep.h"
#include "checkpoint/files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <sys/wait.h>
#include <unistd.h>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

/// What happens at operation |at|, counted over all ranks from 0.
enum class Fault { One, AllFromThere, Kill };

std::atomic<int64_t> numOperations;
std::atomic<int64_t> faultAt;
std::atomic<Fault> faultKind;
std::mutex logMutex;
std::vector<std::string> operationLog;

/// A full disk, a folder that is read-only, a quota, and no permission.
constexpr int kErrors[] = {ENOSPC, EROFS, EDQUOT, EACCES};

int injectFault(const char *operation, const std::string &path) {
  int64_t number = numOperations++;
  {
    std::lock_guard<std::mutex> lock(logMutex);
    operationLog.push_back(operation + (" " + path));
  }
  if (number < faultAt)
    return 0;
  if (faultKind == Fault::Kill)
    raise(SIGKILL);
  return number == faultAt || faultKind == Fault::AllFromThere
             ? kErrors[number % std::size(kErrors)]
             : 0;
}

constexpr int64_t kNever = INT64_MAX;

/// Saves in one call, or in two with a thread that writes.
zero_rt_status saveAs(zero_rt_step *step, const std::string &folder,
                      int64_t number, bool isInBackground) {
  if (!isInBackground)
    return save(step, folder, number);
  if (zero_rt_status status =
          callsOf(step).save_begin(step, folder.c_str(), number))
    return status;
  fillState(step, 99); // and it is not the state that is saved
  zero_rt_status status = callsOf(step).save_end(step);
  return status;
}

class CheckpointFault : public testing::TestWithParam<bool> {};

/// Lets operations fail until the end of the scope.
class FaultScope {
public:
  explicit FaultScope(int64_t at, Fault kind = Fault::One) {
    numOperations = 0;
    operationLog.clear();
    faultAt = at;
    faultKind = kind;
    fileFault = injectFault;
  }
  ~FaultScope() { fileFault = nullptr; }
  FaultScope(const FaultScope &) = delete;
  FaultScope &operator=(const FaultScope &) = delete;
};

/// The state that |folder| has: of seed |first| or |second|.
void expectOneOf(const zero_rt_library &library, const std::string &folder,
                 uint64_t first, uint64_t second) {
  runSteps(library, [&](int32_t, zero_rt_step *step) {
    int64_t number = -1;
    expectOk(load(step, folder, &number));
    EXPECT_TRUE(number == int64_t(first) || number == int64_t(second));
    EXPECT_TRUE(hasState(step, uint64_t(number)));
  });
}

/// The position of the only operation that begins with |text|, or of the last
/// one.
size_t findOperation(const std::string &text) {
  for (size_t i = operationLog.size(); i-- > 0;)
    if (operationLog[i].rfind(text, 0) == 0)
      return i;
  ADD_FAILURE() << text;
  return 0;
}

} // namespace

TEST_P(CheckpointFault, EachFailureLeavesOneThatLoads) {
  for (Fault kind : {Fault::One, Fault::AllFromThere})
    for (int64_t at = 0, failed = 1; failed; ++at) {
      SCOPED_TRACE(at);
      TemporaryFolder folder;
      LibraryBuilder library = makeStateStep({2});
      saveState(library.get(), folder.at(), 1, 1);
      std::atomic<int64_t> failures{0};
      runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
        fillState(step, 2);
        static std::unique_ptr<FaultScope> scope;
        if (rank == 0)
          scope = std::make_unique<FaultScope>(at, kind);
        // Waits for the scope.
        expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
        passAll(step, 0);
        expectOk(applyStep(step, 0));
        fillState(step, 2);
        zero_rt_status status = saveAs(step, folder.at(), 2, GetParam());
        failures += status != ZERO_RT_OK;
        if (status)
          EXPECT_NE(std::string(zero_rt_message()).find(" failed on rank "),
                    std::string::npos)
              << zero_rt_message();
        // A later save of the same step works.
        expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
        passAll(step, 0);
        expectOk(applyStep(step, 0));
        if (rank == 0)
          scope.reset();
        expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
        passAll(step, 0);
        expectOk(applyStep(step, 0));
      });
      EXPECT_NE(failures, 1); // all ranks or none
      expectOneOf(library.get(), folder.at(), 1, 2);
      saveState(library.get(), folder.at(), 3, 3);
      expectLoads(library.get(), folder.at(), 3, 3);
      EXPECT_EQ(namesIn(folder.at()).size(), 2u);
      failed = faultAt < numOperations;
    }
}

// The first one in a folder leaves none or itself.
TEST_P(CheckpointFault, TheFirstOneIsThereOrNot) {
  for (int64_t at = 0, failed = 1; failed; ++at) {
    TemporaryFolder folder;
    LibraryBuilder library = makeStateStep({1});
    runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
      fillState(step, 1);
      auto scope = std::make_unique<FaultScope>(at);
      zero_rt_status saved = saveAs(step, folder.at(), 1, GetParam());
      scope.reset();
      fillState(step, 2);
      zero_rt_status loaded = load(step, folder.at());
      EXPECT_TRUE(loaded || hasState(step, 1));
      EXPECT_TRUE(saved || !loaded);
    });
    failed = at < numOperations;
    saveState(library.get(), folder.at(), 3, 3);
    expectLoads(library.get(), folder.at(), 3, 3);
  }
}

// A load changes all state or none, or the step is poisoned.
TEST(CheckpointFaults, NoStepGoesOnWithHalfOfALoad) {
  TemporaryFolder folder;
  LibraryBuilder library = makeStateStep({2});
  saveState(library.get(), folder.at(), 1);
  std::atomic<int> loads{0}, poisoned{0}, unchanged{0};
  for (int64_t at = 0; !loads; ++at) {
    FaultScope scope(at);
    runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
      fillState(step, 2);
      if (!load(step, folder.at())) {
        EXPECT_TRUE(hasState(step, 1));
        ++loads;
        return;
      }
      int64_t count = 0;
      zero_rt_status status = callsOf(step).state_count(step, &count);
      if (status) {
        expectStatus(ZERO_RT_POISONED, status, "since: load failed: ");
        ++poisoned;
        return;
      }
      EXPECT_TRUE(hasState(step, 2));
      ++unchanged;
    });
  }
  EXPECT_EQ(loads, 2);
  // All ranks get the same result.
  EXPECT_EQ(poisoned % 2, 0);
  EXPECT_GE(poisoned, 2);
  EXPECT_GE(unchanged, 2);
}

TEST(CheckpointFaults, TheMessageNamesRankFileAndReason) {
  TemporaryFolder folder;
  LibraryBuilder library = makeStateStep({3});
  static int error;
  for (int wanted : kErrors) {
    error = wanted;
    fileFault = [](const char *operation, const std::string &path) {
      bool isIt = std::string(operation) == "write" &&
                  path.find("rank-00002") != path.npos;
      return isIt ? error : 0;
    };
    runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
      expectStatus(ZERO_RT_INVALID_ARGUMENT, save(step, folder.at()),
                   ("save failed on rank 2: cannot write '" +
                    folder.at("save-1/rank-00002.safetensors") +
                    "': " + std::strerror(wanted))
                       .c_str());
    });
    fileFault = nullptr;
    EXPECT_TRUE(namesIn(folder.at()).empty());
  }
}

// The names of a new folder are on the disk before the index names them.
TEST(CheckpointFaults, FoldersAreSynced) {
  TemporaryFolder folder;
  {
    FaultScope scope(kNever);
    saveState(makeStateStep({1}).get(), folder.at(), 1);
  }
  std::vector<std::string> folders;
  for (const std::string &line : operationLog)
    if (line.find(" folder ") != line.npos || line.rfind("rename ", 0) == 0)
      folders.push_back(line);
  EXPECT_EQ(
      folders,
      std::vector<std::string>(
          {"create folder " + folder.at(), "sync folder " + folder.at() + "/..",
           "create folder " + folder.at("save-1"), "sync folder " + folder.at(),
           "sync folder " + folder.at("save-1"),
           "rename " + folder.at("checkpoint.json.new-1"),
           "sync folder " + folder.at()}));
}

// What the disk has is never named before it is whole.
TEST(CheckpointFaults, FilesAreSyncedBeforeTheIndexNamesThem) {
  TemporaryFolder folder;
  LibraryBuilder library = makeStateStep({2});
  saveState(library.get(), folder.at(), 1);
  {
    FaultScope scope(kNever);
    saveState(library.get(), folder.at(), 2);
  }
  std::string next = folder.at("checkpoint.json.new-2");
  size_t rename = findOperation("rename " + next);
  for (const char *rank : {"0", "1"}) {
    std::string file =
        folder.at("save-2/rank-0000" + std::string(rank) + ".safetensors");
    EXPECT_LT(findOperation("write " + file), findOperation("sync " + file));
    EXPECT_LT(findOperation("sync " + file), rename);
  }
  EXPECT_LT(findOperation("write " + next), findOperation("sync " + next));
  EXPECT_LT(findOperation("sync " + next), rename);
  EXPECT_LT(findOperation("sync folder " + folder.at("save-2")), rename);
  size_t synced = findOperation("sync folder " + folder.at());
  EXPECT_LT(rename, synced);
  EXPECT_LT(synced, findOperation("remove folder " + folder.at("save-1")));
  auto removed = std::find_if(
      operationLog.begin(), operationLog.end(),
      [](const std::string &line) { return line.rfind("remove ", 0) == 0; });
  EXPECT_LT(synced, size_t(removed - operationLog.begin()));
}

/// What is in the folder before the save that is cut off.
enum class Before { Nothing, Whole, WholeAndKilled };

/// A process saves state 2 and is killed at operation |at|. Whether it was.
static bool saveAndKill(const zero_rt_library &library,
                        const std::string &folder, int64_t at,
                        bool isInBackground) {
  pid_t child = fork();
  if (child == 0) {
    FaultScope scope(at, Fault::Kill);
    runSteps(library, [&](int32_t, zero_rt_step *step) {
      fillState(step, 2);
      expectOk(saveAs(step, folder, 2, isInBackground));
    });
    _exit(testing::Test::HasFailure());
  }
  EXPECT_GT(child, 0);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) ||
              (WIFEXITED(status) && WEXITSTATUS(status) == 0));
  return WIFSIGNALED(status);
}

/// Whether a process is killed a thousand times. Where a fork takes long, it is
/// killed at each operation of one rank.
static bool killsOften() {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return false;
#else
  return !std::getenv("ZERO_TEST_GROUP"); // ranks are threads
#endif
}

// The process is killed at each operation of any of its ranks. One rank loads
// what is there.
TEST_P(CheckpointFault, AKilledProcessLeavesOneThatLoads) {
  LibraryBuilder one = makeStateStep({1});
  int64_t kills = 0, loads = 0;
  std::vector<int32_t> sizes = {1};
  std::vector<Before> befores = {Before::Whole};
  if (killsOften()) {
    sizes = {1, 2, 7, 16};
    befores = {Before::Nothing, Before::Whole, Before::WholeAndKilled};
  }
  for (int32_t ranks : sizes)
    for (Before before : befores) {
      StateLayout layout = {ranks};
      layout.isSharded = ranks == 2;
      LibraryBuilder library = makeStateStep(layout);
      for (int64_t at = 0, killed = 1; killed; ++at) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, at " +
                     std::to_string(at));
        TemporaryFolder folder;
        if (before != Before::Nothing)
          saveState(one.get(), folder.at(), 1, 1);
        if (before == Before::WholeAndKilled) // at another operation
          kills +=
              saveAndKill(library.get(), folder.at(), at * 5 % 11, GetParam());
        killed = saveAndKill(library.get(), folder.at(), at, GetParam());
        kills += killed;
        runSteps(one.get(), [&](int32_t, zero_rt_step *step) {
          int64_t number = -1;
          if (load(step, folder.at(), &number)) {
            EXPECT_TRUE(before == Before::Nothing && killed)
                << zero_rt_message();
            return;
          }
          ++loads;
          EXPECT_TRUE(number == 2 || (number == 1 && killed));
          EXPECT_TRUE(hasState(step, uint64_t(number)));
        });
      }
    }
  EXPECT_GE(kills, killsOften() ? 500 : 10); // in each of two ways
  EXPECT_GE(loads, killsOften() ? 300 : 10);
}

INSTANTIATE_TEST_SUITE_P(Ways, CheckpointFault, testing::Bool(),
                         [](const testing::TestParamInfo<bool> &info) {
                           return info.param ? "InBackground" : "AtOnce";
                         });
