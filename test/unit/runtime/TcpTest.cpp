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
#include "comm/tcp/address.h"
#include "comm/tcp/authentication.h"
#include "comm/tcp/socket.h"
#include "core/runtime.h"

#if __has_include(<openssl/hmac.h>)
#include <openssl/hmac.h>
#endif

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

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
    for (const char *name : {"RANK",
                             "WORLD_SIZE",
                             "SLURM_PROCID",
                             "SLURM_NTASKS",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "ZERO_RT_PORT",
                             "SLURM_JOB_NODELIST",
                             "LOCAL_RANK",
                             "SLURM_LOCALID",
                             "OMPI_COMM_WORLD_LOCAL_RANK",
                             "ZERO_RT_JOB",
                             "TORCHELASTIC_RUN_ID",
                             "SLURM_JOB_ID",
                             "SLURM_STEP_ID",
                             "PMIX_NAMESPACE",
                             "ZERO_RT_SECRET",
                             "ZERO_RT_SECRET_FILE"})
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

TEST(Tcp, ReadsTheJobAndTheSecret) {
  auto read = [](std::vector<std::pair<const char *, const char *>> given) {
    given.insert(given.end(), {{"RANK", "0"}, {"WORLD_SIZE", "2"}});
    Environment environment(given);
    auto options = sized<zero_rt_tcp_options>();
    expectOk(zero_rt_tcp_environment(&options));
    return std::string(options.job) + "/" + options.secret;
  };
  EXPECT_EQ(read({}), "/");
  EXPECT_EQ(read({{"SLURM_JOB_ID", "12"}, {"SLURM_STEP_ID", "3"}}), "12.3/");
  EXPECT_EQ(read({{"TORCHELASTIC_RUN_ID", "a"}, {"PMIX_NAMESPACE", "b"}}),
            "a/");
  EXPECT_EQ(read({{"ZERO_RT_JOB", "7"},
                  {"SLURM_JOB_ID", "12"},
                  {"ZERO_RT_SECRET", "from the variable"}}),
            "7/from the variable");
  Environment environment({{"RANK", "0"},
                           {"WORLD_SIZE", "2"},
                           {"ZERO_RT_INTERFACE", "a name that is too long"}});
  auto options = sized<zero_rt_tcp_options>();
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_tcp_environment(&options),
               "ZERO_RT_INTERFACE gives 23 characters, expected at most 15");
}

TEST(Tcp, TheFileOfASecretIsOfOneUser) {
  char path[] = "/tmp/zero-secret-XXXXXX";
  int file = ::mkstemp(path);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::write(file, "from the file 123\n", 18), 18);
  std::string secret;
  expectOk(readSecret(path, secret));
  EXPECT_EQ(secret, "from the file 123");
  for (mode_t mode : {0640U, 0604U, 0620U}) {
    ASSERT_EQ(::fchmod(file, mode), 0);
    expectStatus(ZERO_RT_INVALID_ARGUMENT, readSecret(path, secret),
                 "so other users can read it; make that 0600");
  }
  ::close(file);
  ::unlink(path);
  expectStatus(ZERO_RT_INVALID_ARGUMENT, readSecret(path, secret),
               "cannot read the secret in '/tmp/zero-secret-");
  expectStatus(ZERO_RT_INVALID_ARGUMENT, readSecret("/dev/null", secret),
               "it is no regular file");
  Environment environment({{"RANK", "0"},
                           {"WORLD_SIZE", "2"},
                           {"ZERO_RT_SECRET_FILE", "/nonexistent"}});
  auto options = sized<zero_rt_tcp_options>();
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_tcp_environment(&options),
               "cannot read the secret in '/nonexistent'");
}

/// Two options of two ranks, with secrets and jobs.
std::vector<zero_rt_tcp_options>
makePair(const char *secret0, const char *secret1, const char *job0 = "",
         const char *job1 = "", int64_t timeoutMs = 400) {
  int32_t port = findFreePort();
  std::vector<zero_rt_tcp_options> pair = {makeOptions(0, 2, port, timeoutMs),
                                           makeOptions(1, 2, port, timeoutMs)};
  std::strcpy(pair[0].secret, secret0);
  std::strcpy(pair[1].secret, secret1);
  std::strcpy(pair[0].job, job0);
  std::strcpy(pair[1].job, job1);
  return pair;
}

TEST(Tcp, RanksProveThatTheyHaveTheSecret) {
  const char *one = "a secret of one job", *other = "a secret of another";
  expectCreate(makePair(one, one, "7", "7", 20000),
               {{ZERO_RT_OK, ""}, {ZERO_RT_OK, ""}});
  expectCreate(makePair(one, other),
               {{ZERO_RT_TIMEOUT, "rank 1 did not come"},
                {ZERO_RT_MISMATCH, "rank 1 has another secret than rank 0"}});
  expectCreate(
      makePair("", other),
      {{ZERO_RT_TIMEOUT,
        "a process was refused: rank 1 has a secret, and rank 0 has none"},
       {ZERO_RT_MISMATCH, "rank 1 has a secret, and rank 0 has none"}});
  expectCreate(makePair(one, one, "7", "8"),
               {{ZERO_RT_TIMEOUT, "rank 0 at this port is of another job"},
                {ZERO_RT_MISMATCH, "give each job another port"}});
  expectCreate(makePair("short", one),
               {{ZERO_RT_INVALID_ARGUMENT, "has 5 characters, expected at "
                                           "least 16"},
                {ZERO_RT_TIMEOUT, "nobody listens at"}});
}

#if __has_include(<openssl/hmac.h>)
static_assert(std::is_same_v<decltype(Crypto::hmac), decltype(&HMAC)>);
static_assert(std::is_same_v<decltype(Crypto::sha256), decltype(&EVP_sha256)>);
#endif

// RFC 4231, test case 2.
// A clock cannot add it.
TEST(Tcp, ATimeoutMayBeTheLongest) {
  const char *secret = "a secret of one job";
  expectCreate(makePair(secret, secret, "7", "7", INT64_MAX),
               {{ZERO_RT_OK, ""}, {ZERO_RT_OK, ""}});
}

TEST(Tcp, TheHmacIsTheOneOfTheStandard) {
  Digest digest;
  const char *text = "what do ya want for nothing?";
  expectOk(authenticate("Jefe", text, std::strlen(text), digest));
  EXPECT_EQ(digest[0], 0x5b);
  EXPECT_EQ(digest[31], 0x43);
  Digest other = digest;
  EXPECT_TRUE(isEqual(digest, other));
  other[31] ^= 1;
  EXPECT_FALSE(isEqual(digest, other));
}

TEST(Tcp, OtherMachinesNeedASecret) {
  zero_rt_tcp_options options = makeOptions(1, 2, 4000, 300);
  std::strcpy(options.host, "192.0.2.1"); // of no machine
  expectCreate({options},
               {{ZERO_RT_INVALID_ARGUMENT,
                 "host '192.0.2.1' is 192.0.2.1, which is another machine, and "
                 "there is no secret; set ZERO_RT_SECRET_FILE"}});
  // Debian names a host by an address of loopback that is not the usual one.
  std::vector<zero_rt_tcp_options> pair = makePair("", "", "", "", 20000);
  std::strcpy(pair[0].host, "127.0.1.1");
  std::strcpy(pair[1].host, "127.0.1.1");
  expectCreate(pair, {{ZERO_RT_OK, ""}, {ZERO_RT_OK, ""}});
  for (zero_rt_tcp_options &one : pair)
    std::strcpy(one.secret, "a secret of one job");
  expectCreate(pair, {{ZERO_RT_OK, ""}, {ZERO_RT_OK, ""}});
}

TEST(Tcp, RanksOfOneMachineMayChooseLoopback) {
  std::vector<zero_rt_tcp_options> pair = makePair("", "", "", "", 20000);
  for (zero_rt_tcp_options &one : pair) {
    std::strcpy(one.secret, "a secret of one job");
    std::strcpy(one.network_interface, "lo");
  }
  expectCreate(pair, {{ZERO_RT_OK, ""}, {ZERO_RT_OK, ""}});
}

TEST(Tcp, GroupsOfOneProcessHavePortsOfTheirOwn) {
  std::vector<zero_rt_tcp_options> options;
  for (int group = 0; group < 3; ++group) {
    options.push_back(makeOptions(0, 2, 0));
    expectOk(zero_rt_tcp_listen(&options.back()));
    options.push_back(makeOptions(1, 2, options.back().port));
  }
  EXPECT_NE(options[0].port, options[2].port);
  expectCreate(options, std::vector<std::pair<zero_rt_status, const char *>>(
                            6, {ZERO_RT_OK, ""}));
  zero_rt_tcp_options late = makeOptions(1, 2, 0);
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_tcp_listen(&late),
               "only rank 0 has a port that others know");
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
  refuses([](auto &o) { std::memset(o.network_interface, 'x', 16); },
          "options->network_interface is too long");
  refuses([](auto &o) { std::strcpy(o.network_interface, "ib0"); },
          "options->network_interface is 'ib0', and without a secret ranks "
          "speak over loopback only");
  refuses(
      [](auto &o) {
        std::strcpy(o.secret, "a secret of one job");
        std::strcpy(o.network_interface, "no-such");
      },
      "options->network_interface is 'no-such', which has no address that "
      "other machines can reach; interfaces with one: ");
  refuses(
      [](auto &o) {
        o.rank = 1;
        std::strcpy(o.host, "no.such.host.invalid");
      },
      "cannot find host 'no.such.host.invalid'");
}

namespace {
/// The files that this process may open, for the life of the object.
class FileLimit {
public:
  explicit FileLimit(rlim_t files) {
    getrlimit(RLIMIT_NOFILE, &before);
    rlimit lower = before;
    lower.rlim_cur = files;
    setrlimit(RLIMIT_NOFILE, &lower);
  }
  ~FileLimit() { setrlimit(RLIMIT_NOFILE, &before); }

private:
  rlimit before = {};
};
} // namespace

TEST(Tcp, EachRankNeedsAFile) {
  FileLimit limit(300);
  zero_rt_tcp_options options = makeOptions(0, 301, 4000);
  expectCreate({options}, {{ZERO_RT_INVALID_ARGUMENT,
                            "options->ranks is 301, and this process may open "
                            "300 files; raise the limit with ulimit -n"}});
}

TEST(Tcp, SaysWhoDidNotCome) {
  int32_t port = findFreePort();
  expectCreate(
      {makeOptions(0, 4, port, 300), makeOptions(2, 4, port, 300)},
      {{ZERO_RT_TIMEOUT, "did not finish within 300 ms: ranks 1, 3 did "
                         "not come"},
       {ZERO_RT_TIMEOUT, "did not finish within 300 ms: ranks 1, 3 did "
                         "not come"}});
  // A port that only root can have, and nobody wants.
  expectCreate({makeOptions(1, 2, 1, 100)},
               {{ZERO_RT_TIMEOUT, "nobody listens at 127.0.0.1 port"}});
}

TEST(Tcp, RanksMustAgreeOnWhoTheyAre) {
  int32_t port = findFreePort();
  const char *text = "rank 1 says that there are 3 ranks, rank 0 that there "
                     "are 2";
  // Rank 0 waits for a rank that says the right number.
  expectCreate({makeOptions(0, 2, port, 500), makeOptions(1, 3, port)},
               {{ZERO_RT_TIMEOUT, text}, {ZERO_RT_MISMATCH, text}});
}

TEST(Tcp, TwoProcessesOfOneRankAreOneTooMany) {
  int32_t port = findFreePort();
  std::vector<std::thread> threads;
  std::atomic<int> good{0}, refused{0};
  for (int32_t rank : {0, 1, 1, 2})
    threads.emplace_back([&, rank] {
      // The last rank comes when both of the others have come.
      if (rank == 2)
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
      zero_rt_tcp_options options = makeOptions(rank, 3, port);
      zero_rt_group *group = nullptr;
      zero_rt_status status = zero_rt_tcp_group_create(&options, &group);
      if (status == ZERO_RT_MISMATCH) {
        ++refused;
        EXPECT_STREQ(zero_rt_message(),
                     "two processes say that they are rank 1");
        return;
      }
      expectOk(status);
      ++good;
      expectOk(zero_rt_group_destroy(group));
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(good, 3);
  EXPECT_EQ(refused, 1);
}

TEST(Tcp, APortThatIsTakenIsAnError) {
  Socket taken;
  Address loopback = Address::loopback();
  expectOk(taken.listen(&loopback, 0));
  expectCreate({makeOptions(0, 2, taken.port())},
               {{ZERO_RT_INTERNAL, "cannot listen at port"}});
}

// Somebody who speaks another language, or says nothing, is let go.
TEST(Tcp, StrangersDoNotMatter) {
  int32_t port = findFreePort();
  std::thread stranger([&] {
    Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    Socket one, other;
    auto connect = [&](Socket &socket) {
      std::string why;
      while (!socket.connect(Address::loopback(), port, end, -1, why))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    connect(one);
    char text[64] = "GET / HTTP/1.1\r\n\r\n";
    EXPECT_TRUE(sendAll(one.get(), text, sizeof(text), end));
    connect(other);
  });
  std::thread rankZero(
      [&] { expectCreate({makeOptions(0, 2, port)}, {{ZERO_RT_OK, ""}}); });
  stranger.join();
  expectCreate({makeOptions(1, 2, port)}, {{ZERO_RT_OK, ""}});
  rankZero.join();
}

} // namespace
