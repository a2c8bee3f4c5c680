//===- mpi_meeting.cpp - The ranks of a communicator meet -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI_Comm_dup waits for ever for a rank that does not come, and does not say
// which one it is. So every rank scatters its status to the others by a
// collective of its own, next to MPI_Comm_idup. A rank whose status has arrived
// has come. A message on the communicator of the caller could meet a receive of
// the caller; a collective cannot.
//
// MPI_Comm_idup comes last. It makes several collectives on the communicator of
// the caller, and begins the later ones whenever a thread is in MPI. A
// collective behind it would precede these on one rank and follow them on
// another.
//
//===----------------------------------------------------------------------===//

#include "comm/mpi/mpi_meeting.h"
#include "zero_rt/transport.h"

#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

using namespace zero_rt;

namespace {

zero_rt_status check(const char *call, int code) {
  return code == MPI_SUCCESS
             ? ZERO_RT_OK
             : zero_rt_fail(ZERO_RT_INTERNAL,
                            describeMpiError(call, code).c_str());
}

using Clock = std::chrono::steady_clock;

/// The collectives in which the ranks meet, and the memory that MPI uses.
class Meeting {
public:
  Meeting(MPI_Comm comm, int64_t timeoutMs, zero_rt_status mine)
      : comm(comm), timeoutMs(timeoutMs), mine(mine) {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    sent.assign(size_t(ranks), mine);
    ones.assign(size_t(ranks), 1);
    places.resize(size_t(ranks));
    for (int i = 0; i < ranks; ++i)
      places[size_t(i)] = i;
    statuses.assign(size_t(ranks), ZERO_RT_OK);
    arrivals.assign(size_t(ranks), MPI_REQUEST_NULL);
  }

  zero_rt_status start();
  /// Waits for all ranks. Errors: timeout, internal.
  zero_rt_status wait();
  /// The status of the first rank that has failed.
  zero_rt_status getFirstFailure() const;

  MPI_Comm duplicate = MPI_COMM_NULL;

private:
  /// Tests |request| unless it is done, and says whether it is.
  static zero_rt_status test(MPI_Request &request, bool &isDone);
  /// "rank 1 did not come"
  std::string describeMissing();

  MPI_Comm comm;
  int64_t timeoutMs;
  zero_rt_status mine;
  int rank = 0;
  int ranks = 0;
  std::vector<int> sent, ones, places; // to each rank
  std::vector<int> statuses;           // from each rank
  std::vector<MPI_Request> arrivals;
  MPI_Request duplication = MPI_REQUEST_NULL;
};

} // namespace

zero_rt_status Meeting::start() {
  for (int root = 0; root < ranks; ++root) {
    int code = MPI_Iscatterv(sent.data(), ones.data(), places.data(), MPI_INT,
                             &statuses[size_t(root)], 1, MPI_INT, root, comm,
                             &arrivals[size_t(root)]);
    if (zero_rt_status status = check("MPI_Iscatterv", code))
      return status;
  }
  return check("MPI_Comm_idup", MPI_Comm_idup(comm, &duplicate, &duplication));
}

zero_rt_status Meeting::test(MPI_Request &request, bool &isDone) {
  int done = 1; // also of a request that was done before
  zero_rt_status status =
      check("MPI_Test", MPI_Test(&request, &done, MPI_STATUS_IGNORE));
  isDone = done;
  return status;
}

zero_rt_status Meeting::wait() {
  Clock::time_point deadline =
      Clock::now() + std::chrono::milliseconds(timeoutMs);
  for (size_t next = 0;;) {
    bool isDone = true;
    while (isDone) {
      if (next > arrivals.size())
        return ZERO_RT_OK;
      MPI_Request &request =
          next < arrivals.size() ? arrivals[next] : duplication;
      if (zero_rt_status status = test(request, isDone))
        return status;
      next += isDone;
    }
    if (Clock::now() > deadline)
      break;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return zero_rt_fail(ZERO_RT_TIMEOUT,
                      ("the process group was not created within " +
                       std::to_string(timeoutMs) + " ms: " + describeMissing())
                          .c_str());
}

std::string Meeting::describeMissing() {
  std::string list;
  int count = 0;
  for (int other = 0; other < ranks; ++other) {
    bool hasCome = false;
    if (other == rank || (!test(arrivals[size_t(other)], hasCome) && hasCome))
      continue;
    list += (count++ ? ", " : "") + std::to_string(other);
  }
  if (count == 0)
    return "all ranks came, and one of them gave up or has stopped since";
  return (count == 1 ? "rank " : "ranks ") + list + " did not come";
}

zero_rt_status Meeting::getFirstFailure() const {
  for (int other = 0; other < ranks; ++other) {
    zero_rt_status status = statuses[size_t(other)];
    if (status == ZERO_RT_OK)
      continue;
    if (other == rank)
      return mine; // with its message
    std::string text = "rank " + std::to_string(other) +
                       (status == ZERO_RT_OUT_OF_MEMORY
                            ? ": out of memory"
                            : " cannot create its process group: status " +
                                  std::to_string(status));
    return zero_rt_fail(status, text.c_str());
  }
  return ZERO_RT_OK;
}

std::string zero_rt::describeMpiError(const char *call, int code) {
  char error[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, error, &length);
  return std::string(call) + ": " + std::string(error, size_t(length));
}

zero_rt_status zero_rt::meet(MPI_Comm comm, int64_t timeoutMs,
                             zero_rt_status mine, MPI_Comm &duplicate) {
  std::unique_ptr<Meeting> meeting;
  try {
    meeting = std::make_unique<Meeting>(comm, timeoutMs, mine);
    zero_rt_status status = meeting->start();
    if (!status)
      status = meeting->wait();
    if (!status) {
      duplicate = meeting->duplicate;
      return meeting->getFirstFailure();
    }
    // MPI can cancel no collective, and may still use the memory.
    (void)meeting.release();
    return status;
  } catch (const std::bad_alloc &) {
    (void)meeting.release();
    return zero_rt_fail(ZERO_RT_OUT_OF_MEMORY, "out of memory");
  }
}
