//===- TcpTest.cpp - How ranks find each other, and lose each other -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All other tests of the runtime run over TCP as well, with
// ZERO_TEST_GROUP=tcp.
//
//===----------------------------------------------------------------------===//

#include "zero_rt/tcp.h"
#include "CollectiveBits.h"
#include "Ranks.h"
#include "TrainStep.h"
#include "comm/tcp/connections.h"
#include "core/runtime.h"

#include <cstdlib>
#include <cstring>
#include <thread>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

/// Sets variables of the environment, and nothing else that launchers set, for
/// the life of the object.
class Environment {
public:
  explicit Environment(
      const std::vector<std::pair<const char *, const char *>> &variables) {
    clear();
    for (auto [name, value] : variables)
      ::setenv(name, value, 1);
  }
  ~Environment() { clear(); }

private:
  static void clear() {
    for (const char *name :
         {"RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS",
          "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "MASTER_ADDR",
          "MASTER_PORT", "ZERO_RT_PORT", "SLURM_JOB_NODELIST", "LOCAL_RANK",
          "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"})
      ::unsetenv(name);
  }
};

zero_rt_tcp_options makeOptions(int32_t rank, int32_t ranks, int32_t port,
                                int64_t timeoutMs = 20000) {
  auto options = sized<zero_rt_tcp_options>();
  options.rank = rank;
  options.ranks = ranks;
  options.port = port;
  options.timeout_ms = timeoutMs;
  std::strcpy(options.host, "127.0.0.1");
  return options;
}

/// Creates a group for each of |options| at once, and expects |status|.
void expectCreate(
    const std::vector<zero_rt_tcp_options> &options,
    const std::vector<std::pair<zero_rt_status, const char *>> &expected) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.size(); ++i)
    threads.emplace_back([&, i] {
      zero_rt_group *group = nullptr;
      expectStatus(expected[i].first,
                   zero_rt_tcp_group_create(&options[i], &group),
                   expected[i].second);
      EXPECT_EQ(group == nullptr, expected[i].first != ZERO_RT_OK);
      if (group)
        expectOk(zero_rt_group_destroy(group));
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Tcp, ReadsWhatLaunchersSay) {
  auto expects = [](std::vector<std::pair<const char *, const char *>> given,
                    int32_t rank, int32_t ranks, int32_t port, const char *host,
                    int32_t localRank = 0) {
    Environment environment(given);
    auto options = sized<zero_rt_tcp_options>();
    expectOk(zero_rt_tcp_environment(&options));
    EXPECT_EQ(options.rank, rank);
    EXPECT_EQ(options.ranks, ranks);
    EXPECT_EQ(options.port, port);
    EXPECT_EQ(options.local_rank, localRank);
    EXPECT_STREQ(options.host, host);
  };
  expects({{"RANK", "3"}, {"WORLD_SIZE", "8"}}, 3, 8, 29501, "127.0.0.1");
  expects({{"RANK", "0"},
           {"WORLD_SIZE", "2"},
           {"MASTER_ADDR", "node7"},
           {"MASTER_PORT", "29500"}},
          0, 2, 29501, "node7");
  expects({{"RANK", "0"},
           {"WORLD_SIZE", "2"},
           {"MASTER_PORT", "29500"},
           {"ZERO_RT_PORT", "4000"}},
          0, 2, 4000, "127.0.0.1");
  expects({{"SLURM_PROCID", "5"},
           {"SLURM_NTASKS", "6"},
           {"SLURM_JOB_NODELIST", "gpu[03-07,11],login"}},
          5, 6, 29501, "gpu03");
  expects({{"SLURM_PROCID", "0"},
           {"SLURM_NTASKS", "1"},
           {"SLURM_JOB_NODELIST", "a,b"}},
          0, 1, 29501, "a");
  expects({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, 1, 4,
          29501, "127.0.0.1");
  expects({{"RANK", "9"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "1"}}, 9, 16,
          29501, "127.0.0.1", 1);
  expects({{"SLURM_PROCID", "6"},
           {"SLURM_NTASKS", "8"},
           {"SLURM_LOCALID", "2"},
           {"LOCAL_RANK", "1"}},
          6, 8, 29501, "127.0.0.1", 2);
  expects({{"OMPI_COMM_WORLD_RANK", "7"},
           {"OMPI_COMM_WORLD_SIZE", "8"},
           {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}},
          7, 8, 29501, "127.0.0.1", 3);
}

TEST(Tcp, NamesTheVariableThatIsWrong) {
  auto refuses = [](std::vector<std::pair<const char *, const char *>> given,
                    const char *text) {
    Environment environment(given);
    auto options = sized<zero_rt_tcp_options>();
    expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_tcp_environment(&options),
                 text);
  };
  refuses({}, "RANK and WORLD_SIZE are not set; start the ranks with torchrun");
  refuses({{"RANK", "0"}}, "WORLD_SIZE is not set");
  refuses({{"WORLD_SIZE", "2"}}, "RANK is not set");
  refuses({{"RANK", "2"}, {"WORLD_SIZE", "2"}},
          "RANK is '2', expected a number from 0 to 1");
  refuses({{"RANK", "one"}, {"WORLD_SIZE", "2"}}, "RANK is 'one'");
  refuses({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}},
          "LOCAL_RANK is '2', expected a number from 0 to 1");
  refuses({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "99999"}},
          "MASTER_PORT is '99999', expected a number from 1 to 65534");
  refuses({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", ""}},
          "MASTER_ADDR is no host: ''");
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_tcp_environment(nullptr),
               "out_options is null");
}

TEST(Tcp, RefusesBadOptions) {
  auto refuses = [](auto &&change, const char *text) {
    zero_rt_tcp_options options = makeOptions(0, 2, 4000);
    change(options);
    expectCreate({options}, {{ZERO_RT_INVALID_ARGUMENT, text}});
  };
  refuses([](auto &o) { o.struct_size = 4; }, "options->struct_size is 4");
  refuses([](auto &o) { o.ranks = 0; }, "options->ranks is 0");
  refuses([](auto &o) { o.ranks = INT32_MAX; },
          "options->ranks is 2147483647, expected 1 to 1048576");
  refuses([](auto &o) { o.rank = 2; }, "options->rank is 2, expected 0 to 1");
  refuses([](auto &o) { o.port = 0; }, "options->port is 0");
  refuses([](auto &o) { o.host[0] = 0; }, "options->host is empty");
  refuses([](auto &o) { o.timeout_ms = -1; }, "options->timeout_ms is -1");
  refuses(
      [](auto &o) {
        o.rank = 1;
        std::strcpy(o.host, "no.such.host.invalid");
      },
      "cannot find host 'no.such.host.invalid'");
}

TEST(Tcp, SaysWhoDidNotCome) {
  int32_t port = findFreePort();
  expectCreate(
      {makeOptions(0, 4, port, 300), makeOptions(2, 4, port, 300)},
      {{ZERO_RT_TIMEOUT, "did not finish within 300 ms: ranks 1, 3 did "
                         "not come"},
       {ZERO_RT_TIMEOUT, "rank 0 at 127.0.0.1 port"}});
  // A port that only root can have, and nobody wants.
  expectCreate({makeOptions(1, 2, 1, 100)},
               {{ZERO_RT_TIMEOUT, "nobody listens at 127.0.0.1 port"}});
}

TEST(Tcp, RanksMustAgreeOnWhoTheyAre) {
  int32_t port = findFreePort();
  expectCreate({makeOptions(0, 2, port), makeOptions(1, 3, port, 2000)},
               {{ZERO_RT_MISMATCH, "rank 1 says that there are 3 ranks, rank 0 "
                                   "that there are 2"},
                {ZERO_RT_TIMEOUT, "did not say"}});
  port = findFreePort();
  expectCreate({makeOptions(0, 3, port), makeOptions(1, 3, port, 2000),
                makeOptions(1, 3, port, 2000)},
               {{ZERO_RT_MISMATCH, "two processes say that they are rank 1"},
                {ZERO_RT_TIMEOUT, "did not say"},
                {ZERO_RT_TIMEOUT, "did not say"}});
}

TEST(Tcp, APortThatIsTakenIsAnError) {
  Socket taken;
  expectOk(taken.listen(0));
  expectCreate({makeOptions(0, 2, taken.port())},
               {{ZERO_RT_INTERNAL, "cannot listen at port"}});
}

// Somebody who speaks another language, or says nothing, is let go.
TEST(Tcp, StrangersDoNotMatter) {
  int32_t port = findFreePort();
  std::thread stranger([&] {
    Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    Socket one, other;
    expectOk(one.connect("127.0.0.1", port, end));
    char text[64] = "GET / HTTP/1.1\r\n\r\n";
    EXPECT_TRUE(one.sendAll(text, sizeof(text), end));
    expectOk(other.connect("127.0.0.1", port, end));
  });
  std::thread rankZero(
      [&] { expectCreate({makeOptions(0, 2, port)}, {{ZERO_RT_OK, ""}}); });
  stranger.join();
  expectCreate({makeOptions(1, 2, port)}, {{ZERO_RT_OK, ""}});
  rankZero.join();
}

// The connections break, as if the process had died: who waits is told at once.
TEST(Tcp, ARankThatDiesFreesThoseWhoWait) {
  Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  Socket listener, mine, theirs;
  std::string from;
  expectOk(listener.listen(0));
  expectOk(theirs.connect("127.0.0.1", listener.port(), end));
  mine = listener.accept(end, from);
  std::vector<Socket> sockets(2);
  sockets[1] = std::move(mine);
  auto *connections = new Connections(0, std::move(sockets));
  zero_rt_transport transport = Connections::makeTransport(connections);
  zero_rt_group *group = nullptr;
  zero_rt_runtime *runtime = nullptr;
  expectOk(zero_rt_transport_group_create(&transport, &group));
  expectOk(zero_rt_create(group, 0, nullptr, &runtime));
  LibraryBuilder library = makeTrainStep(2);
  zero_rt_step *step = nullptr;
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    theirs = Socket();
  });
  auto begin = std::chrono::steady_clock::now();
  expectStatus(
      ZERO_RT_TIMEOUT,
      callsOf(runtime).step_create(runtime, &library.get(), nullptr, &step),
      "rank 1 is gone and will not come to step_create");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  killer.join();
  expectOk(zero_rt_destroy(runtime));
  expectOk(zero_rt_group_destroy(group));
}

} // namespace
