//===- handle.cpp - What callers hold of an object ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/handle.h"

#include "core/calls.h"
#include "core/status.h"

#include <pthread.h>
#include <unistd.h>

using namespace zero_rt;

/// The id of this process. A handler of fork updates it, so that calls need not
/// ask the system.
static std::atomic<int32_t> thisProcess{0};
static std::atomic<Handle *> newest{nullptr};

static void noteProcess() { thisProcess = int32_t(getpid()); }

static int32_t watchProcess() {
  static const int registered = [] {
    noteProcess();
    return pthread_atfork(nullptr, nullptr, noteProcess);
  }();
  (void)registered;
  return thisProcess;
}

Handle::Handle(HandleKind kind, Handle *rank)
    : calls(&callTable), kind(kind), process(watchProcess()),
      rank(rank ? rank : this) {}

void zero_rt::giveOut(Handle *handle, void *object) noexcept {
  handle->object = object;
  handle->next = newest;
  while (!newest.compare_exchange_weak(handle->next, handle))
    ;
}

static const char *nameOf(HandleKind kind) {
  switch (kind) {
  case HandleKind::Group:
    return "process group";
  case HandleKind::Runtime:
    return "runtime";
  case HandleKind::Step:
    return "step";
  }
  return nullptr; // other memory
}

zero_rt_status zero_rt::checkHandle(const char *call, const Handle *handle,
                                    HandleKind kind) {
  const char *name = nameOf(kind);
  if (!handle)
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s: %s is null", call, name);
  if (handle->kind != kind) {
    const char *other = nameOf(handle->kind);
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s: this is no %s%s%s", call, name,
                other ? ", but a " : "", other ? other : "");
  }
  if (!handle->object)
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s: the %s was destroyed", call,
                name);
  if (handle->process != thisProcess)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "%s: process %d created the %s, and this is process %d; after "
                "a fork, create process groups, runtimes and steps anew",
                call, handle->process, name, thisProcess.load());
  return ZERO_RT_OK;
}

zero_rt_status RankCall::begin(const char *call, Handle *handle,
                               HandleKind kind) {
  static thread_local char self; // has another address on each thread
  ZERO_RT_TRY(checkHandle(call, handle, kind));
  if (handle->rank->thread == &self)
    return ZERO_RT_OK; // nested: no other thread has destroyed it since
  const void *none = nullptr;
  if (!handle->rank->thread.compare_exchange_strong(none, &self))
    return fail(ZERO_RT_PROTOCOL,
                "%s: another thread is in a call of the same runtime or of "
                "one of its steps; use them from one thread at a time",
                call);
  rank = handle->rank;
  mode.emplace();
  // Another thread may have destroyed it in the meantime.
  return checkHandle(call, handle, kind);
}

RankCall::~RankCall() {
  if (rank)
    rank->thread.store(nullptr, std::memory_order_release);
}
