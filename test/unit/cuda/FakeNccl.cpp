//===- FakeNccl.cpp - NCCL without GPUs -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeNccl.h"

#include "FakeJoint.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

using namespace zero::test;
using namespace zero::test::fake;

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;
constexpr int kInProgress = 7;

namespace {

struct UniqueId {
  char bytes[128];
};

/// The communicators of one unique id.
struct Clique {
  std::vector<struct Comm *> comms; // by rank; null: has not come
  std::map<uint64_t, std::unique_ptr<Joint>> joints;
  bool isAborted = false; // by any of them
  int ended = 0;
};

struct Comm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int gpu = 0;
  uint64_t calls = 0;
  /// What is not queued yet, and how often one must ask until it is.
  std::vector<std::pair<Part, Stream *>> waiting;
  int asks = 0;
  bool isFinal = false;
};

struct State {
  int version = 21400;
  bool isStalled = false;
  bool isLate = false;
  bool abortsTogether = false;
  std::map<std::string, Gpu::Failure> failures;
  std::map<int, int> asyncErrors;
  std::map<std::string, std::shared_ptr<Clique>> cliques;
  int numIds = 0;
  int comms = 0;
  int64_t collectives = 0;
};

State &state() {
  static State theState;
  return theState;
}

/// What the calls of a group of this thread have brought so far.
struct Group {
  int depth = 0;
  Comm *comm = nullptr;
  Stream *stream = nullptr;
  Part part;
};
thread_local Group group;

/// Every call begins with one.
class Entry {
public:
  explicit Entry(const char *function, Stream *stream = nullptr,
                 size_t bytes = 0)
      : lock(gpu().mutex) {
    Call call;
    call.function = function;
    call.stream = gpu().streamOf(stream).number;
    call.bytes = int64_t(bytes);
    call.thread = std::this_thread::get_id();
    gpu().note(call);
    auto failure = state().failures.find(function);
    if (failure == state().failures.end() || --failure->second.count != 0)
      return;
    error = failure->second.error;
    state().failures.erase(failure);
  }
  int error = kSuccess;

private:
  std::lock_guard<std::mutex> lock;
};

/// Queues |part| as the next of |comm|.
void queue(Comm &comm, Part part, Stream *stream) {
  std::unique_ptr<Joint> &joint = comm.clique->joints[++comm.calls];
  if (!joint)
    joint = std::make_unique<Joint>(comm.clique->comms.size());
  auto rank = size_t(comm.rank);
  joint->parts[rank] = std::move(part);
  auto arrive = [clique = comm.clique, joint = joint.get(), rank] {
    joint->parts[rank]->hasArrived = true;
    for (const auto &other : joint->parts)
      if (!other || !other->hasArrived)
        return;
    if (!state().isStalled && !clique->isAborted && agree(*joint)) {
      perform(*joint);
      ++state().collectives;
    }
  };
  gpu().queue(gpu().streamOf(stream), {arrive});
  gpu().queue(gpu().streamOf(stream),
              {{}, nullptr, &joint->passed[rank], /*turn=*/1});
}

/// Takes |part| now, to be queued when it has been asked for.
int submit(Comm *comm, Part part, Stream *stream) {
  comm->waiting.emplace_back(std::move(part), stream);
  comm->asks = int(gpu().random() % 3) + (state().isLate && !comm->calls);
  return comm->asks ? kInProgress : kSuccess;
}

int call(const char *function, Comm *comm, Stream *stream, Part part) {
  Entry entry(function, stream, part.count * sizeOf(part.type));
  if (entry.error)
    return entry.error;
  if (!comm || comm->isFinal || (comm->asks && !comm->waiting.empty()))
    return kInvalidUsage; // the one before is in progress
  part.what = function + 4;
  int result = submit(comm, std::move(part), stream);
  if (result == kSuccess) {
    queue(*comm, std::move(comm->waiting.back().first), stream);
    comm->waiting.clear();
  }
  return result;
}

/// Adds to the group that this thread has begun.
int addMessage(const char *function, Comm *comm, Stream *stream,
               std::vector<Part::Message> Part::*list, Part::Message message) {
  Entry entry(function, stream, message.bytes);
  if (entry.error)
    return entry.error;
  if (!group.depth || (group.comm && group.comm != comm))
    return kInvalidUsage;
  group.comm = comm;
  group.stream = stream;
  (group.part.*list).push_back(message);
  return kSuccess;
}

uint64_t addressOf(const void *data) {
  return uint64_t(reinterpret_cast<uintptr_t>(data));
}

void end(Comm *comm) {
  // What this rank has come to, others may still come to.
  comm->clique->comms[size_t(comm->rank)] = nullptr;
  ++comm->clique->ended;
  --state().comms;
  delete comm;
}

/// Whether all ranks have come to their first collective, or one is gone.
bool areAllThere(const Clique &clique) {
  return std::all_of(
      clique.comms.begin(), clique.comms.end(), [](const Comm *comm) {
        return !comm || comm->calls > 0 || !comm->waiting.empty();
      });
}

} // namespace

//===----------------------------------------------------------------------===//
// What tests say
//===----------------------------------------------------------------------===//

void fake::resetNccl() {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  int ids = state().numIds;
  state() = {};
  state().numIds = ids;
}
void fake::setNcclVersion(int version) { state().version = version; }
void fake::failNccl(const std::string &function, int error, int count) {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  state().failures[function] = {error, count};
}
void fake::setAsyncError(int rank, int error) {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  state().asyncErrors[rank] = error;
}
void fake::connectLate(bool isLate) {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  state().isLate = isLate;
}
void fake::abortTogether(bool isTogether) {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  state().abortsTogether = isTogether;
}
void fake::stallNccl(bool isStalled) {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  state().isStalled = isStalled;
}
int fake::countComms() {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  return state().comms;
}
int64_t fake::countCollectives() {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  return state().collectives;
}

//===----------------------------------------------------------------------===//
// What the runtime calls
//===----------------------------------------------------------------------===//

extern "C" {

int ncclGetVersion(int *version) {
  *version = state().version;
  return kSuccess;
}
const char *ncclGetErrorString(int error) {
  switch (error) {
  case 2:
    return "unhandled system error";
  case kInvalidUsage:
    return "invalid usage";
  case 6:
    return "remote process exited or there was a network error";
  default:
    return "another error";
  }
}
const char *ncclGetLastError(Comm *) { return ""; }

int ncclGetUniqueId(UniqueId *id) {
  Entry entry("ncclGetUniqueId");
  std::memset(id, 0, sizeof(*id));
  std::string name = "id " + std::to_string(++state().numIds);
  std::memcpy(id->bytes, name.c_str(), name.size());
  return entry.error;
}

struct Config {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
};
int ncclCommInitRankConfig(Comm **out, int ranks, UniqueId id, int rank,
                           Config *config) {
  Entry entry("ncclCommInitRankConfig");
  if (entry.error)
    return entry.error;
  if (config->size < sizeof(Config) || config->magic != 0xcafebeef ||
      config->version > unsigned(state().version) || config->blocking != 0)
    return kInvalidArgument;
  std::shared_ptr<Clique> &clique = state().cliques[id.bytes];
  if (!clique) {
    clique = std::make_shared<Clique>();
    clique->comms.resize(size_t(ranks));
  }
  if (clique->comms.size() != size_t(ranks) || clique->comms[size_t(rank)])
    return kInvalidUsage;
  *out = clique->comms[size_t(rank)] = new Comm;
  (*out)->clique = clique;
  (*out)->rank = rank;
  (*out)->gpu = getCurrentGpu();
  ++state().comms;
  return kInProgress;
}
int ncclCommGetAsyncError(Comm *comm, int *out) {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  auto error = state().asyncErrors.find(comm->rank);
  if (error != state().asyncErrors.end()) {
    *out = error->second;
    return kSuccess;
  }
  const auto &comms = comm->clique->comms;
  // Until all have come; later some may have gone.
  bool isWhole = comm->calls > 0 || !comm->waiting.empty() ||
                 std::find(comms.begin(), comms.end(), nullptr) == comms.end();
  *out = isWhole && comm->asks == 0 ? kSuccess : kInProgress;
  if (state().isLate && comm->calls == 0 && !comm->waiting.empty() &&
      !areAllThere(*comm->clique)) {
    *out = kInProgress;
    return kSuccess;
  }
  if (!isWhole || comm->asks == 0 || --comm->asks > 0)
    return kSuccess;
  for (auto &[part, stream] : comm->waiting)
    queue(*comm, std::move(part), stream);
  comm->waiting.clear();
  *out = kSuccess;
  return kSuccess;
}
int ncclCommCount(Comm *comm, int *out) {
  *out = int(comm->clique->comms.size());
  return kSuccess;
}
int ncclCommUserRank(Comm *comm, int *out) {
  *out = comm->rank;
  return kSuccess;
}
int ncclCommCuDevice(Comm *comm, int *out) {
  *out = comm->gpu;
  return kSuccess;
}
int ncclCommFinalize(Comm *comm) {
  Entry entry("ncclCommFinalize");
  if (comm->isFinal)
    gpu().complain("a communicator is finalized twice");
  comm->isFinal = true;
  return entry.error;
}
int ncclCommDestroy(Comm *comm) {
  Entry entry("ncclCommDestroy");
  if (!comm->isFinal)
    gpu().complain("a communicator is destroyed that was not finalized");
  end(comm);
  return entry.error;
}
int ncclCommAbort(Comm *comm) {
  std::shared_ptr<Clique> clique = comm->clique;
  bool isTogether = false;
  {
    Entry entry("ncclCommAbort");
    // It waits for nobody any more, and nothing is done with its memory.
    clique->isAborted = true;
    for (auto &[number, joint] : clique->joints)
      joint->passed[size_t(comm->rank)].passed.insert(1);
    end(comm);
    isTogether = state().abortsTogether;
  }
  for (int i = 0; isTogether && i < 20000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::lock_guard<std::mutex> lock(gpu().mutex);
    isTogether = clique->ended < int(clique->comms.size());
  }
  return kSuccess;
}

int ncclGroupStart() {
  Entry entry("ncclGroupStart");
  ++group.depth;
  return entry.error;
}
int ncclGroupEnd() {
  Entry entry("ncclGroupEnd", group.stream);
  Group mine = std::exchange(group, {});
  if (entry.error || !mine.comm)
    return entry.error;
  if (mine.comm->asks && !mine.comm->waiting.empty())
    return kInvalidUsage;
  mine.part.what = "trade";
  int result = submit(mine.comm, std::move(mine.part), mine.stream);
  if (result == kSuccess) {
    queue(*mine.comm, std::move(mine.comm->waiting.back().first), mine.stream);
    mine.comm->waiting.clear();
  }
  return result;
}

int ncclAllReduce(const void *src, void *dst, size_t count, int type, int op,
                  Comm *comm, Stream *stream) {
  if (op != 0 || sizeOf(type) == 1)
    return kInvalidArgument;
  return call("ncclAllReduce", comm, stream,
              {"", addressOf(src), addressOf(dst), count, type, {}, {}});
}
int ncclReduceScatter(const void *src, void *dst, size_t count, int type,
                      int op, Comm *comm, Stream *stream) {
  if (op != 0 || sizeOf(type) == 1)
    return kInvalidArgument;
  return call("ncclReduceScatter", comm, stream,
              {"", addressOf(src), addressOf(dst), count, type, {}, {}});
}
int ncclAllGather(const void *src, void *dst, size_t count, int type,
                  Comm *comm, Stream *stream) {
  return call("ncclAllGather", comm, stream,
              {"", addressOf(src), addressOf(dst), count, type, {}, {}});
}
int ncclSend(const void *data, size_t count, int, int peer, Comm *comm,
             Stream *stream) {
  return addMessage("ncclSend", comm, stream, &Part::sent,
                    {peer, addressOf(data), count});
}
int ncclRecv(void *data, size_t count, int, int peer, Comm *comm,
             Stream *stream) {
  return addMessage("ncclRecv", comm, stream, &Part::received,
                    {peer, addressOf(data), count});
}

} // extern "C"
