//===- CheckpointProcessTest.cpp - A rank dies during a save --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two ranks are processes, and one of them is killed at each of its operations
// on files. The other one gets an error, and the folder has the previous
// checkpoint or the new one.
//
//===----------------------------------------------------------------------===//

#include "Checkpoints.h"
#include "Ranks.h"
#include "TrainStep.h"
#include "checkpoint/files.h"
#include "zero_rt/tcp.h"

#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

int operationsLeft; // of this process, until it is killed

int countDown(const char *, const std::string &) {
  if (operationsLeft-- == 0)
    raise(SIGKILL);
  return 0;
}

struct Rank {
  int32_t rank;
  int32_t port;
  std::string folder;
  int killedAt; // -1: never
};

enum Exit { Saved, Refused, Wrong };

/// Saves state of seed 2 in a process of its own, which has |rank| of two.
Exit saveAsRank(const Rank &mine, const zero_rt_library &library) {
  auto tcp = sized<zero_rt_tcp_options>();
  tcp.rank = mine.rank;
  tcp.ranks = 2;
  tcp.port = mine.port;
  tcp.timeout_ms = 20000;
  std::strcpy(tcp.host, "127.0.0.1");
  std::strcpy(tcp.secret, "of this test and no other");
  auto options = sized<zero_rt_options>();
  options.timeout_ms = 20000;
  zero_rt_group *group = nullptr;
  zero_rt_runtime *runtime = nullptr;
  zero_rt_step *step = nullptr;
  if (zero_rt_tcp_group_create(&tcp, &group) ||
      zero_rt_create(group, mine.rank, &options, &runtime) ||
      callsOf(runtime).step_create(runtime, &library, nullptr, &step))
    return Wrong;
  fillState(step, 2);
  operationsLeft = mine.killedAt;
  fileFault = countDown;
  if (!save(step, mine.folder, 2))
    return Saved;
  int32_t other = 1 - mine.rank;
  std::string named = "rank " + std::to_string(other);
  bool isNamed =
      std::string(zero_rt_message()).find(named) != std::string::npos;
  return isNamed ? Refused : Wrong;
}

/// Runs both ranks, of which |killed| is killed at operation |at|. Returns
/// whether it was.
bool runProcesses(const zero_rt_library &library, const std::string &folder,
                  int32_t killed, int at) {
  int32_t port = findFreePort();
  pid_t children[2];
  for (int32_t r = 0; r < 2; ++r) {
    children[r] = fork();
    if (children[r] == 0)
      _exit(saveAsRank({r, port, folder, r == killed ? at : -1}, library));
  }
  int statuses[2] = {};
  for (int32_t r = 0; r < 2; ++r)
    EXPECT_EQ(waitpid(children[r], &statuses[r], 0), children[r]);
  bool isKilled = WIFSIGNALED(statuses[killed]);
  int other = statuses[1 - killed];
  EXPECT_TRUE(WIFEXITED(other));
  // Rank 0 is killed after the last meeting, too, when it removes files.
  if (isKilled && WEXITSTATUS(other) == Saved)
    EXPECT_EQ(killed, 0);
  else
    EXPECT_EQ(WEXITSTATUS(other), isKilled ? Refused : Saved);
  return isKilled;
}

} // namespace

TEST(CheckpointProcess, ARankThatIsKilledLeavesOneThatLoads) {
  LibraryBuilder library = makeStateStep({2});
  const zero_rt_library &tables = library.get();
  for (int32_t killed : {1, 0})
    for (int at = 0;; ++at) {
      SCOPED_TRACE("rank " + std::to_string(killed) + " at operation " +
                   std::to_string(at));
      TemporaryFolder folder;
      saveState(tables, folder.at(), 1, 1);
      bool isKilled = runProcesses(tables, folder.at(), killed, at);
      runSteps(tables, [&](int32_t, zero_rt_step *step) {
        int64_t number = 0;
        expectOk(load(step, folder.at(), &number));
        EXPECT_TRUE(number == 2 || (number == 1 && isKilled));
        EXPECT_TRUE(hasState(step, uint64_t(number)));
      });
      if (!isKilled || HasFailure())
        break;
    }
}
