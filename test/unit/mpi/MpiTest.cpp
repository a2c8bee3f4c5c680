//===- MpiTest.cpp - Processes give the bits of threads -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mpiexec -n 4 zero_mpi_tests: every process runs every test.
//
//===----------------------------------------------------------------------===//

#include "zero_rt/mpi.h"
#include "CollectiveBits.h"
#include "Ranks.h"
#include "TrainStep.h"
#include "core/runtime.h"

#include <cstdlib>
#include <thread>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

class Mpi : public testing::Test {
protected:
  void SetUp() override {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    start(20000);
  }
  void TearDown() override {
    stop();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  void start(int64_t timeoutMs) {
    auto options = sized<zero_rt_options>();
    options.timeout_ms = timeoutMs;
    expectOk(zero_rt_mpi_group_create(MPI_COMM_WORLD, &group));
    expectOk(zero_rt_create(group, rank, &options, &runtime));
  }
  void stop() {
    expectOk(zero_rt_destroy(runtime));
    expectOk(zero_rt_group_destroy(group));
  }

  int rank = 0;
  int ranks = 0;
  zero_rt_group *group = nullptr;
  zero_rt_runtime *runtime = nullptr;
};

/// Parameters after some steps of |backwards| backward passes each; gradients
/// differ by rank, step and backward pass, and are no round numbers.
std::vector<uint16_t> train(zero_rt_step *step, int rank) {
  for (int i = 0; i < 4; ++i) {
    for (int b = 0; b <= i; ++b) {
      expectOk(callsOf(step).begin_backward(step, 0));
      passAll(step, 0.37F * float(rank + 1) + 0.11F * float(i * 7 + b));
      if (b < i)
        expectOk(callsOf(step).accumulate(step));
    }
    expectOk(applyStep(step, 0.01));
    auto results = sized<zero_rt_results>();
    expectOk(callsOf(step).results(step, &results));
    EXPECT_EQ(results.verdict, ZERO_RT_APPLIED);
  }
  return parameterBits(step);
}

} // namespace

TEST_F(Mpi, GivesTheBitsOfSumsInOrder) {
  checkCollectives(*runtime->get()->communicator, rank, ranks);
}

TEST_F(Mpi, TrainsAsThreadsDo) {
  LibraryBuilder library = makeTrainStep(ranks);
  std::vector<uint16_t> expected;
  runSteps(library.get(), [&](int32_t r, zero_rt_step *step) {
    std::vector<uint16_t> bits = train(step, r);
    if (r == rank)
      expected = std::move(bits);
  });
  StepHandle step = createStep(runtime, library.get());
  ASSERT_TRUE(step);
  EXPECT_EQ(train(step.get(), rank), expected);
  // What was sent is what threads would have.
  EXPECT_EQ(countersOf(runtime).scalar_all_reduces, 4);
}

TEST_F(Mpi, NamesTheRanksThatDoNotCome) {
  stop();
  start(/*timeoutMs=*/200);
  std::vector<float> data(64);
  Tag tag = {"all_gather", "b0", 64, ZERO_RT_F32, ZERO_RT_F32, 0};
  auto gather = [&] {
    return runtime->get()->communicator->allGather(tag, data.data());
  };
  if (ranks > 1 && rank == 0)
    expectStatus(ZERO_RT_TIMEOUT, gather(),
                 ranks == 2
                     ? "did not finish within 200 ms: rank 1 did not come"
                     : "did not finish within 200 ms: ranks 1, ");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0)
    return;
  // The news may reach a rank that comes late before it waits, or after.
  zero_rt_status status = gather();
  EXPECT_TRUE(status == ZERO_RT_POISONED || status == ZERO_RT_TIMEOUT);
  EXPECT_NE(std::string(zero_rt_message()).find("all_gather of 'b0' did not"),
            std::string::npos)
      << zero_rt_message();
}

TEST_F(Mpi, NamesTheRanksThatDoNotCreateTheirProcessGroup) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  zero_rt_group *late = nullptr;
  if (ranks > 1 && rank == 0) {
    std::string names = ranks == 2 ? "rank 1" : "ranks 1";
    for (int r = 2; r < ranks; ++r)
      names += ", " + std::to_string(r);
    expectStatus(
        ZERO_RT_TIMEOUT, zero_rt_mpi_group_create_within(comm, 200, &late),
        ("was not created within 200 ms: " + names + " did not come").c_str());
    EXPECT_EQ(late, nullptr);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (ranks > 1 && rank == 0)
    return;
  // Rank 0 has come before it gave up.
  zero_rt_status status = zero_rt_mpi_group_create_within(comm, 200, &late);
  if (status == ZERO_RT_OK)
    expectOk(zero_rt_group_destroy(late));
  else
    EXPECT_EQ(status, ZERO_RT_TIMEOUT) << zero_rt_message();
}

// The collectives of MPI_Comm_idup go on whenever a thread is in MPI.
TEST_F(Mpi, CreatesAProcessGroupWhileAThreadIsInMpi) {
  int threads = MPI_THREAD_SINGLE;
  MPI_Query_thread(&threads);
  ASSERT_EQ(threads, MPI_THREAD_MULTIPLE);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::thread other([&] {
    int received = 0;
    MPI_Recv(&received, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
             MPI_STATUS_IGNORE);
  });
  zero_rt_status status = ZERO_RT_OK;
  for (int i = 0; i < 100 && !status; ++i) {
    zero_rt_group *made = nullptr;
    status = zero_rt_mpi_group_create_within(comm, 5000, &made);
    EXPECT_EQ(status, ZERO_RT_OK) << zero_rt_message();
    if (made)
      expectOk(zero_rt_group_destroy(made));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&rank, 1, MPI_INT, (rank + 1) % ranks, 0, comm);
  other.join();
}

// MPI sends a long message when its receiver asks for it, and gives up none.
TEST_F(Mpi, AMessageOutlivesItsStep) {
  stop();
  start(/*timeoutMs=*/100);
  std::vector<char> data(8 << 20, 7);
  MessageName name;
  name.step = 1;
  if (ranks > 1 && rank == 0) {
    Message message;
    message.data = data.data();
    message.bytes = int64_t(data.size());
    expectOk(runtime->get()->messenger->send(1, name, message));
    runtime->get()->messenger->declareEnd(1);
    runtime->get()->messenger->leaveStep(1);
    std::fill(data.begin(), data.end(), 9);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 1)
    return;
  std::vector<char> got(data.size());
  zero_rt_status status = ZERO_RT_TIMEOUT;
  for (int i = 0; i < 50 && status == ZERO_RT_TIMEOUT; ++i)
    status = runtime->get()->messenger->receive(
        0, name, got.data(), int64_t(got.size()), "the name");
  expectOk(status);
  EXPECT_EQ(got, data);
}

TEST_F(Mpi, RefusesWhatIsNoCommunicator) {
  zero_rt_group *none = nullptr;
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_mpi_group_create(MPI_COMM_NULL, &none),
               "comm is MPI_COMM_NULL");
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_mpi_group_create(MPI_COMM_WORLD, nullptr),
               "out_group is null");
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_mpi_group_create_within(MPI_COMM_WORLD, -1, &none),
               "timeout_ms is -1, expected at least 0");
}

TEST_F(Mpi, RefusesACommunicatorBetweenGroups) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks == 1)
    GTEST_SKIP() << "one rank makes one group";
  MPI_Comm half, between;
  MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 5, &between);
  zero_rt_group *none = nullptr;
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_mpi_group_create(between, &none),
               "comm is an intercommunicator; merge it");
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  zero_rt_group *none = nullptr;
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_mpi_group_create(MPI_COMM_WORLD, &none),
               "MPI is not initialized; call MPI_Init");
  int provided = 0;
  MPI_Init_thread(&argc, &argv,
                  std::getenv("ZERO_TEST_MPI_THREADS") ? MPI_THREAD_MULTIPLE
                                                       : MPI_THREAD_SINGLE,
                  &provided);
  int failed = RUN_ALL_TESTS();
  // Too late is no reason to abort.
  zero_rt_group *late = nullptr;
  zero_rt_runtime *runtime = nullptr;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  expectOk(zero_rt_mpi_group_create(MPI_COMM_WORLD, &late));
  expectOk(zero_rt_create(late, rank, nullptr, &runtime));
  MPI_Finalize();
  expectOk(zero_rt_destroy(runtime));
  expectOk(zero_rt_group_destroy(late));
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_mpi_group_create(MPI_COMM_WORLD, &none),
               "MPI is finalized");
  return failed || testing::Test::HasFailure();
}
