//===- FakeGpu.h - Memory and streams of a fake GPU -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_CUDA_FAKEGPU_H
#define ZERO_TEST_UNIT_CUDA_FAKEGPU_H

#include "FakeDriver.h"

#include <cfenv>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>

namespace zero::test::fake {

/// Memory of one GPU.
struct Pool {
  /// The GPUs that may use all of it, whenever it was allocated.
  std::shared_ptr<std::set<int>> users = std::make_shared<std::set<int>>();
};

struct Event {
  int gpu = 0;
  uint64_t recorded = 0; // how often that was queued
  /// Which of them are done: on several streams not always in that order.
  std::set<uint64_t> passed;
  bool hasPassed(uint64_t turn) const {
    return turn == 0 || passed.count(turn) != 0;
  }
};

/// Something that is queued.
struct Work {
  std::function<void()> run; // may be empty
  Event *records = nullptr;
  Event *awaits = nullptr;
  uint64_t turn = 0; // of either
};

/// What is put together, or can be launched.
struct Graph {
  struct Node {
    std::string what; // of which one can be updated to another
    std::function<void()> run;
  };
  std::list<Node> nodes;
};

struct Stream {
  int64_t number = 0;
  int gpu = 0;
  std::deque<Work> queue;
};

/// An address that only the GPU can use is that of its memory and this: such as
/// no CPU has.
constexpr uint64_t kFar = uint64_t(1) << 60;

/// While one lives, its thread rounds as it says.
class Rounding {
public:
  explicit Rounding(int mode) : before(std::fegetround()) {
    std::fesetround(mode);
  }
  ~Rounding() { std::fesetround(before); }
  Rounding(const Rounding &) = delete;
  Rounding &operator=(const Rounding &) = delete;

private:
  int before;
};

/// All of it is under one mutex.
class Gpu {
public:
  std::mutex mutex;

  // Memory.
  uint64_t allocate(size_t bytes, const Pool &pool, Stream &stream);
  bool release(uint64_t address, Stream &stream);
  void *allocateHost(size_t bytes);
  bool releaseHost(void *data);
  bool isFar(uint64_t address) const { return address >= kFar; }
  /// Whether |bytes| at a near address are pinned.
  bool isPinned(uint64_t address) const;
  /// |address| for a CPU, if |bytes| there can be used now, and by |user|, a
  /// GPU or -1; else null and an error.
  void *toNear(uint64_t address, size_t bytes, const char *what, int user = -1);

  // Streams.
  Stream *createStream(int gpu);
  void destroyStream(Stream *stream);
  /// Null stands for the default stream of the context that is current.
  Stream &streamOf(Stream *stream) {
    return stream ? *stream : defaultStreams[getCurrentGpu()];
  }
  bool isDefault(const Stream &stream) const {
    return std::any_of(
        defaultStreams.begin(), defaultStreams.end(),
        [&](const auto &entry) { return &entry.second == &stream; });
  }
  Event *createEvent(int gpu);
  void destroyEvent(Event *event);
  void queue(Stream &stream, Work work);
  /// Runs what is queued, in some order, until |isDone|.
  void runUntil(const std::function<bool()> &isDone);
  /// Runs a little of it, perhaps: on average as much as |patience| says.
  void runSome(unsigned patience = 1);

  void note(Call call) { calls.push_back(std::move(call)); }
  void complain(std::string text) { errors.push_back(std::move(text)); }

  struct Allocation {
    std::unique_ptr<char, void (*)(void *)> data{nullptr, std::free};
    size_t bytes = 0;
    bool isThere = false; // in the order of its stream
    bool isReleased = false;
    std::shared_ptr<const std::set<int>> users;
  };
  struct NamedKernel {
    std::vector<bool> areAddresses;
    Kernel kernel;
  };
  struct Function {
    int gpu = 0;
    std::string name;
    NamedKernel kernel;
  };
  struct Module {
    std::map<std::string, Function> functions;
  };
  struct Failure {
    int error = 0;
    int count = 0;
  };

  std::mt19937 random;
  std::map<std::string, NamedKernel> kernels;
  std::map<std::string, Failure> failures;
  std::vector<Call> calls;
  std::vector<std::string> errors;
  std::string log;
  int version = 12040;
  int gpus = 1;
  bool arePeers = true; // whether GPUs can use each other's memory
  int major = 9;
  int minor = 0;
  int64_t held = -1; // a stream whose last things do not happen
  size_t heldLast = 0;
  int contexts = 0;
  std::list<Pool> pools;
  std::list<Graph> graphs;
  std::map<uint64_t, Allocation> allocations; // by their near address
  std::map<uint64_t, std::unique_ptr<char[]>> pinned;
  std::map<uint64_t, size_t> pinnedBytes;
  std::list<Module> modules;

private:
  bool runOne();

  std::map<int, Stream> defaultStreams; // by GPU
  std::list<Stream> streams;
  std::list<Event> events;
  std::list<Event> destroyed; // which what is queued may refer to
  int64_t numStreams = 0;

public:
  size_t countStreams() const { return streams.size(); }
  size_t countEvents() const { return events.size(); }
};

Gpu &gpu();

} // namespace zero::test::fake

#endif // ZERO_TEST_UNIT_CUDA_FAKEGPU_H
