//===- mpi_group.cpp - A transport over MPI -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Only messages from one rank to another: MPI's reductions leave the order of
// additions open, and its collectives wait for ever for a rank that does not
// come.
//
//===----------------------------------------------------------------------===//

#include "zero_rt/mpi.h"
#include "zero_rt/transport.h"

#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

/// A send of at most so much is copied, so that it needs nobody's memory.
constexpr int64_t mostCopied = 4096;

struct Request {
  MPI_Request handle = MPI_REQUEST_NULL;
  std::vector<char> copy; // of what is sent
};

/// The context of the transport.
struct Mpi {
  MPI_Comm comm = MPI_COMM_NULL;
  std::string message;

  static Mpi &of(void *context) { return *static_cast<Mpi *>(context); }

  zero_rt_status check(const char *call, int code) {
    if (code == MPI_SUCCESS)
      return ZERO_RT_OK;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    message = std::string(call) + ": " + std::string(text, size_t(length));
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
  auto *request = new (std::nothrow) Request;
  if (!request) {
    mpi.message = "out of memory";
    return ZERO_RT_OUT_OF_MEMORY;
  }
  zero_rt_status status = mpi.check(call, begin(*request));
  if (status)
    delete request;
  else
    *out = request;
  return status;
}

zero_rt_status Mpi::send(void *context, int32_t to, int32_t channel,
                         const void *data, int64_t bytes, void **out) {
  Mpi &mpi = of(context);
  return start(mpi, "MPI_Isend", out, [&](Request &request) {
    if (bytes <= mostCopied) {
      auto *from = static_cast<const char *>(data);
      request.copy.assign(from, from + bytes);
      data = request.copy.data();
    }
    return MPI_Isend(data, int(bytes), MPI_BYTE, to, channel, mpi.comm,
                     &request.handle);
  });
}

zero_rt_status Mpi::receive(void *context, int32_t from, int32_t channel,
                            void *data, int64_t bytes, void **out) {
  Mpi &mpi = of(context);
  return start(mpi, "MPI_Irecv", out, [&](Request &request) {
    return MPI_Irecv(data, int(bytes), MPI_BYTE, from, channel, mpi.comm,
                     &request.handle);
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
  if (done && !status)
    delete request;
  return status;
}

void Mpi::cancel(void *context, void *opaque) {
  auto *request = static_cast<Request *>(opaque);
  if (isFinalized())
    return; // it is done, or never will be
  int done = 0;
  if (!request->copy.empty()) {
    MPI_Test(&request->handle, &done, MPI_STATUS_IGNORE);
    if (done)
      delete request; // else MPI may still read it, to the end
    return;
  }
  // MPI cancels a receive that has no message yet; one that has, and a send
  // that has begun, end by themselves, unless the other process has died.
  if (request->handle != MPI_REQUEST_NULL)
    MPI_Cancel(&request->handle);
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (!MPI_Test(&request->handle, &done, MPI_STATUS_IGNORE) && !done &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  if (!done)
    MPI_Request_free(&request->handle);
  delete request;
}

void Mpi::destroy(void *context) {
  // The communicator stays until MPI_Finalize, and abandoned sends with it:
  // others may have said something that nobody received, and a communicator
  // made later could have the number of one that was freed, and get it.
  delete &of(context);
}

extern "C" __attribute__((visibility("default"))) zero_rt_status
zero_rt_mpi_group_create(MPI_Comm comm, zero_rt_group **out_group) {
  if (!out_group)
    return zero_rt_fail(ZERO_RT_INVALID_ARGUMENT, "out_group is null");
  *out_group = nullptr;
  int isInitialized = 0;
  MPI_Initialized(&isInitialized);
  if (!isInitialized || isFinalized())
    return zero_rt_fail(ZERO_RT_INVALID_ARGUMENT,
                        isFinalized() ? "MPI is finalized"
                                      : "MPI is not initialized; call MPI_Init "
                                        "or MPI_Init_thread first");
  if (comm == MPI_COMM_NULL)
    return zero_rt_fail(ZERO_RT_INVALID_ARGUMENT, "comm is MPI_COMM_NULL");
  auto *mpi = new (std::nothrow) Mpi;
  if (!mpi)
    return zero_rt_fail(ZERO_RT_OUT_OF_MEMORY, "out of memory");
  zero_rt_transport transport = {};
  transport.struct_size = sizeof(transport);
  zero_rt_status status =
      mpi->check("MPI_Comm_dup", MPI_Comm_dup(comm, &mpi->comm));
  if (!status) {
    // Errors are told and not fatal.
    MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(mpi->comm, &transport.rank);
    MPI_Comm_size(mpi->comm, &transport.ranks);
    transport.context = mpi;
    transport.send = Mpi::send;
    transport.receive = Mpi::receive;
    transport.test = Mpi::test;
    transport.cancel = Mpi::cancel;
    transport.error = Mpi::error;
    transport.destroy = Mpi::destroy;
    status = zero_rt_transport_group_create(&transport, out_group);
  } else {
    zero_rt_fail(status, mpi->message.c_str());
  }
  if (status)
    Mpi::destroy(mpi);
  return status;
}
