//===- mpi_group.cpp - A transport over MPI -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Uses only messages between two ranks of MPI once the ranks have met. MPI's
// reductions leave the order of additions open, and its collectives do not fail
// when a rank is gone.
//
//===----------------------------------------------------------------------===//

#include "zero_rt/mpi.h"

#include "comm/mpi/mpi_meeting.h"
#include "core/status.h"
#include "core/timeout.h"
#include "zero_rt/transport.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

using namespace zero_rt;

namespace {

/// MPI can cancel neither a send nor a receive that has begun. So a request has
/// memory of its own, which MPI reads and writes. The memory of a request that
/// was given up stays allocated.
struct Request {
  MPI_Request handle = MPI_REQUEST_NULL;
  std::vector<char> bytes;
  void *target = nullptr; // of a receive
};

/// The context of the transport.
struct Mpi {
  MPI_Comm comm = MPI_COMM_NULL;
  std::string message;

  static Mpi &of(void *context) { return *static_cast<Mpi *>(context); }

  zero_rt_status check(const char *call, int code) {
    if (code == MPI_SUCCESS)
      return ZERO_RT_OK;
    message = describeMpiError(call, code);
    return ZERO_RT_INTERNAL;
  }

  static zero_rt_status send(void *context, int32_t to, int32_t channel,
                             const void *data, int64_t bytes, void **out);
  static zero_rt_status receive(void *context, int32_t from, int32_t channel,
                                void *data, int64_t bytes, void **out);
  static zero_rt_status test(void *context, void *request, int32_t *outDone);
  static void cancel(void *context, void *request);
  static const char *error(void *context) {
    return of(context).message.c_str();
  }
  static void destroy(void *context);
};

} // namespace

static bool isFinalized() {
  int flag = 0;
  MPI_Finalized(&flag);
  return flag;
}

/// A request that |begin| gives to MPI.
template <typename Begin>
static zero_rt_status start(Mpi &mpi, const char *call, void **out,
                            Begin begin) {
  if (isFinalized()) {
    mpi.message = "MPI is finalized";
    return ZERO_RT_INTERNAL;
  }
  try {
    auto request = std::make_unique<Request>();
    if (zero_rt_status status = mpi.check(call, begin(*request)))
      return status;
    *out = request.release();
    return ZERO_RT_OK;
  } catch (const std::bad_alloc &) {
    mpi.message = "out of memory";
    return ZERO_RT_OUT_OF_MEMORY;
  }
}

zero_rt_status Mpi::send(void *context, int32_t to, int32_t channel,
                         const void *data, int64_t bytes, void **out) {
  Mpi &mpi = of(context);
  return start(mpi, "MPI_Isend", out, [&](Request &request) {
    auto *from = static_cast<const char *>(data);
    request.bytes.assign(from, from + bytes);
    return MPI_Isend(request.bytes.data(), int(bytes), MPI_BYTE, to, channel,
                     mpi.comm, &request.handle);
  });
}

zero_rt_status Mpi::receive(void *context, int32_t from, int32_t channel,
                            void *data, int64_t bytes, void **out) {
  Mpi &mpi = of(context);
  return start(mpi, "MPI_Irecv", out, [&](Request &request) {
    request.bytes.resize(size_t(bytes));
    request.target = data;
    return MPI_Irecv(request.bytes.data(), int(bytes), MPI_BYTE, from, channel,
                     mpi.comm, &request.handle);
  });
}

zero_rt_status Mpi::test(void *context, void *opaque, int32_t *outDone) {
  auto *request = static_cast<Request *>(opaque);
  *outDone = 0;
  if (isFinalized()) {
    of(context).message = "MPI is finalized";
    return ZERO_RT_INTERNAL;
  }
  int done = 0;
  zero_rt_status status = of(context).check(
      "MPI_Test", MPI_Test(&request->handle, &done, MPI_STATUS_IGNORE));
  *outDone = done;
  if (done && !status) {
    if (request->target)
      std::memcpy(request->target, request->bytes.data(),
                  request->bytes.size());
    delete request;
  }
  return status;
}

void Mpi::cancel(void *, void *opaque) {
  auto *request = static_cast<Request *>(opaque);
  if (isFinalized())
    return; // the request is done, or never will be
  if (request->target)
    MPI_Cancel(&request->handle);
  int done = 0;
  MPI_Test(&request->handle, &done, MPI_STATUS_IGNORE);
  if (done)
    delete request; // otherwise MPI may still use it
}

void Mpi::destroy(void *context) {
  // The communicator, with its abandoned sends, stays until MPI_Finalize. It
  // may have messages that no rank received, and a later communicator could get
  // its number and these messages.
  delete &of(context);
}

/// The transport over |mpi|, and its process group on this rank. Messages
/// travel over mpi.comm, which may come later.
static zero_rt_status createGroup(MPI_Comm comm, Mpi &mpi,
                                  zero_rt_group **out) {
  zero_rt_transport transport = {};
  transport.struct_size = sizeof(transport);
  MPI_Comm_rank(comm, &transport.rank);
  MPI_Comm_size(comm, &transport.ranks);
  // Several threads may call MPI at the same time.
  int threads = MPI_THREAD_SINGLE;
  MPI_Query_thread(&threads);
  transport.any_thread = threads == MPI_THREAD_MULTIPLE;
  transport.context = &mpi;
  transport.send = Mpi::send;
  transport.receive = Mpi::receive;
  transport.test = Mpi::test;
  transport.cancel = Mpi::cancel;
  transport.error = Mpi::error;
  transport.destroy = Mpi::destroy;
  return zero_rt_transport_group_create(&transport, out);
}

/// Destroys |group| and returns |error|, with the message that it has.
static zero_rt_status destroyAfter(zero_rt_status error, zero_rt_group *group) {
  char message[280];
  std::snprintf(message, sizeof(message), "%s", zero_rt_message());
  (void)zero_rt_group_destroy(group);
  return zero_rt_fail(error, message);
}

/// Errors: invalid_argument.
static zero_rt_status checkArguments(MPI_Comm comm, int64_t timeoutMs) {
  if (timeoutMs < 0) {
    char message[80];
    std::snprintf(message, sizeof(message),
                  "timeout_ms is %lld, expected at least 0",
                  (long long)timeoutMs);
    return zero_rt_fail(ZERO_RT_INVALID_ARGUMENT, message);
  }
  int isInitialized = 0;
  MPI_Initialized(&isInitialized);
  if (!isInitialized || isFinalized())
    return zero_rt_fail(ZERO_RT_INVALID_ARGUMENT,
                        isFinalized() ? "MPI is finalized"
                                      : "MPI is not initialized; call MPI_Init "
                                        "or MPI_Init_thread first");
  if (comm == MPI_COMM_NULL)
    return zero_rt_fail(ZERO_RT_INVALID_ARGUMENT, "comm is MPI_COMM_NULL");
  int isBetweenGroups = 0;
  MPI_Comm_test_inter(comm, &isBetweenGroups);
  if (isBetweenGroups)
    return zero_rt_fail(ZERO_RT_INVALID_ARGUMENT,
                        "comm is an intercommunicator; merge it with "
                        "MPI_Intercomm_merge first");
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_mpi_group_create(MPI_Comm comm, zero_rt_group **out_group) {
  return zero_rt_mpi_group_create_within(comm, 0, out_group);
}

ZERO_RT_EXPORT zero_rt_status zero_rt_mpi_group_create_within(
    MPI_Comm comm, int64_t timeout_ms, zero_rt_group **out_group) {
  if (!out_group)
    return zero_rt_fail(ZERO_RT_INVALID_ARGUMENT, "out_group is null");
  *out_group = nullptr;
  ZERO_RT_TRY(checkArguments(comm, timeout_ms));
  // The other ranks hear of a failure only in the meeting.
  zero_rt_group *group = nullptr;
  auto *mpi = new (std::nothrow) Mpi;
  zero_rt_status status =
      mpi ? createGroup(comm, *mpi, &group)
          : zero_rt_fail(ZERO_RT_OUT_OF_MEMORY, "out of memory");
  MPI_Comm own = MPI_COMM_NULL;
  status = meet(comm, getTimeoutMs(timeout_ms), status, own);
  if (status) {
    if (group)
      return destroyAfter(status, group);
    delete mpi;
    return status;
  }
  // MPI returns errors and does not abort.
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  mpi->comm = own;
  *out_group = group;
  return ZERO_RT_OK;
}
