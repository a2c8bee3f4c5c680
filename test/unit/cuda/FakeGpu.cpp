//===- FakeGpu.cpp - Memory and streams of a fake GPU -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeGpu.h"

#include <algorithm>
#include <cstring>
#include <sstream>

using namespace zero::test::fake;

Gpu &zero::test::fake::gpu() {
  static Gpu theGpu;
  return theGpu;
}

static std::string hex(uint64_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << value;
  return text.str();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

uint64_t Gpu::allocate(size_t bytes, const Pool &pool, Stream &stream) {
  void *data = nullptr;
  if (posix_memalign(&data, 256, bytes))
    return 0;
  // Neither zero nor what was there before.
  std::memset(data, 0xa7, bytes);
  auto address = uint64_t(reinterpret_cast<uintptr_t>(data));
  Allocation &fresh = allocations[address];
  fresh.data.reset(static_cast<char *>(data));
  fresh.bytes = bytes;
  fresh.users = pool.users;
  queue(stream, {[this, address] { allocations[address].isThere = true; }});
  return address + kFar;
}

bool Gpu::release(uint64_t address, Stream &stream) {
  auto found = allocations.find(address - kFar);
  if (found == allocations.end() || found->second.isReleased)
    return false;
  found->second.isReleased = true;
  queue(stream, {[this, near = address - kFar] { allocations.erase(near); }});
  return true;
}

void *Gpu::allocateHost(size_t bytes) {
  std::unique_ptr<char[]> data(new char[bytes]);
  std::memset(data.get(), 0xa7, bytes);
  auto address = uint64_t(reinterpret_cast<uintptr_t>(data.get()));
  pinnedBytes[address] = bytes;
  void *result = data.get();
  pinned[address] = std::move(data);
  return result;
}

bool Gpu::releaseHost(void *data) {
  auto address = uint64_t(reinterpret_cast<uintptr_t>(data));
  pinnedBytes.erase(address);
  return pinned.erase(address) == 1;
}

bool Gpu::isPinned(uint64_t address) const {
  auto after = pinnedBytes.upper_bound(address);
  if (after == pinnedBytes.begin())
    return false;
  auto found = std::prev(after);
  return address < found->first + found->second;
}

void *Gpu::toNear(uint64_t address, size_t bytes, const char *what, int user) {
  uint64_t near = isFar(address) ? address - kFar : address;
  auto *data = reinterpret_cast<void *>(uintptr_t(near));
  if (!isFar(address)) {
    if (isPinned(address))
      return data;
    complain(std::string(what) + " uses memory of the host at " + hex(address));
    return nullptr;
  }
  auto after = allocations.upper_bound(near);
  auto found =
      after == allocations.begin() ? allocations.end() : std::prev(after);
  // A slice may begin, or an empty array be, right behind the last byte.
  if (found == allocations.end() ||
      near + bytes > found->first + found->second.bytes) {
    complain(std::string(what) + " uses memory that is not there: " +
             std::to_string(bytes) + " bytes at " + hex(address));
    return nullptr;
  }
  if (!found->second.isThere) {
    complain(std::string(what) + " uses memory before it is allocated");
    return nullptr;
  }
  if (user >= 0 && !found->second.users->count(user)) {
    complain(std::string(what) + " uses memory of another GPU");
    return nullptr;
  }
  return data;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

Stream *Gpu::createStream(int gpu) {
  Stream &stream = streams.emplace_back();
  stream.number = ++numStreams;
  stream.gpu = gpu;
  return &streams.back();
}

void Gpu::destroyStream(Stream *stream) {
  runUntil([&] { return stream->queue.empty(); });
  streams.remove_if([&](const Stream &other) { return &other == stream; });
}

Event *Gpu::createEvent(int gpu) {
  events.emplace_back().gpu = gpu;
  return &events.back();
}

void Gpu::destroyEvent(Event *event) {
  // What is queued still refers to it, and may wait for other ranks.
  auto isThis = [&](const Event &other) { return &other == event; };
  destroyed.splice(destroyed.end(), events,
                   std::find_if(events.begin(), events.end(), isThis));
}

void Gpu::queue(Stream &stream, Work work) {
  stream.queue.push_back(std::move(work));
}

/// Runs the head of some stream that need not wait; false if there is none.
bool Gpu::runOne() {
  std::vector<Stream *> ready;
  auto look = [&](Stream &stream) {
    if (stream.queue.empty() ||
        (stream.number == held && stream.queue.size() <= heldLast))
      return;
    const Work &head = stream.queue.front();
    if (!head.awaits || head.awaits->hasPassed(head.turn))
      ready.push_back(&stream);
  };
  for (auto &[gpu, stream] : defaultStreams)
    look(stream);
  for (Stream &stream : streams)
    look(stream);
  if (ready.empty())
    return false;
  Stream &chosen = *ready[random() % ready.size()];
  Work work = std::move(chosen.queue.front());
  chosen.queue.pop_front();
  if (work.run) {
    Rounding rounding(FE_TONEAREST); // however the thread rounds that calls
    work.run();
  }
  if (work.records)
    work.records->passed.insert(work.turn);
  return true;
}

void Gpu::runUntil(const std::function<bool()> &isDone) {
  while (!isDone())
    if (!runOne()) {
      complain("streams wait for each other");
      return;
    }
}

void Gpu::runSome(unsigned patience) {
  while (random() % (patience + 3) < patience && runOne())
    ;
}
