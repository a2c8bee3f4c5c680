//===- segment.cpp - Memory that other processes can map ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/segment.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <iterator>
#include <mutex>
#include <pthread.h>
#include <set>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace zero_rt;

/// The memory of the machine, at most the largest file of this process: a
/// larger one would end the process by a signal.
static int64_t segmentBytes() {
  int64_t bytes = int64_t(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit))
    return 0;
  if (limit.rlim_cur != RLIM_INFINITY)
    bytes = int64_t(std::min<uint64_t>(uint64_t(bytes), limit.rlim_cur));
  return bytes / Segment::pageBytes * Segment::pageBytes;
}

namespace {
/// All segments of this process.
struct Known {
  std::mutex mutex;
  std::set<Segment *> segments;
};
} // namespace

/// Never destroyed: handlers of fork use it.
static Known &known() {
  static auto *segments = new Known;
  return *segments;
}

void Segment::copyInChild() {
  void *copy = ::mmap(base, size_t(size), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0);
  if (copy == MAP_FAILED) // the limit on private memory: reads are left
    (void)::mprotect(base, size_t(size), PROT_READ);
}

bool Segment::watchForks() {
  static const bool isWatching = [] {
    auto copyAll = [] {
      for (Segment *segment : known().segments)
        segment->copyInChild();
      known().mutex.unlock();
    };
    return !::pthread_atfork([] { known().mutex.lock(); },
                             [] { known().mutex.unlock(); }, copyAll);
  }();
  return isWatching;
}

std::unique_ptr<Segment> Segment::create() {
  std::unique_ptr<Segment> segment(new Segment);
  if (!watchForks() || !segment->open())
    return nullptr;
  std::lock_guard<std::mutex> lock(known().mutex);
  known().segments.insert(segment.get());
  return segment;
}

void *Segment::map(int file, int64_t bytes, int protection) {
  if (bytes > INT64_MAX - hugeBytes)
    return nullptr;
  size_t reserved = size_t(bytes + hugeBytes);
  void *place = ::mmap(nullptr, reserved, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED)
    return nullptr;
  auto *begin = static_cast<char *>(place);
  auto *aligned = static_cast<char *>(
      std::align(size_t(hugeBytes), size_t(bytes), place, reserved));
  void *mapped = ::mmap(aligned, size_t(bytes), protection,
                        MAP_SHARED | MAP_FIXED, file, 0);
  if (aligned != begin)
    ::munmap(begin, size_t(aligned - begin));
  if (mapped == MAP_FAILED) {
    ::munmap(aligned, reserved);
    return nullptr;
  }
  if (reserved > size_t(bytes))
    ::munmap(aligned + bytes, reserved - size_t(bytes));
  // See copyInChild. A dump would allocate all pages.
  if (::madvise(mapped, size_t(bytes), MADV_DONTFORK) ||
      ::madvise(mapped, size_t(bytes), MADV_DONTDUMP)) {
    ::munmap(mapped, size_t(bytes));
    return nullptr;
  }
  return mapped;
}

bool Segment::open() {
  size = segmentBytes();
  file = ::memfd_create("zero_rt", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (size <= pageBytes || file < 0 || ::ftruncate(file, size) ||
      ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
    return false;
  base = map(file, size, PROT_READ | PROT_WRITE);
  if (!base || !back(0, pageBytes) ||
      ::madvise(base, size_t(size), MADV_DOFORK))
    return false;
  auto *head = new (base) SegmentHead{};
  constexpr auto bytes = sizeof(head->nonce);
  if (::getrandom(head->nonce.data(), bytes, 0) != ssize_t(bytes))
    return false;
  extents = {
      {0, {pageBytes, /*isFree=*/false, /*isBacked=*/true}},
      {pageBytes, {size - pageBytes, /*isFree=*/true, /*isBacked=*/false}}};
  return true;
}

Segment::~Segment() {
  {
    std::lock_guard<std::mutex> lock(known().mutex);
    known().segments.erase(this);
  }
  if (base)
    ::munmap(base, size_t(size));
  if (file >= 0)
    ::close(file);
}

/// Makes the pages in [begin, end). Without memory a later access would end the
/// process.
bool Segment::back(int64_t begin, int64_t end) {
  while (::fallocate(file, 0, begin, end - begin))
    if (errno != EINTR)
      return false;
#ifndef MADV_COLLAPSE // since Linux 6.1
  constexpr int MADV_COLLAPSE = 25;
#endif
  // Without large pages everything works, too.
  if (int64_t huge = (end - begin) / hugeBytes * hugeBytes)
    (void)::madvise(static_cast<char *>(base) + begin, size_t(huge),
                    MADV_COLLAPSE);
  return true;
}

void *Segment::allocate(int64_t bytes) {
  if (bytes > size - pageBytes)
    return nullptr;
  bytes = (bytes + pageBytes - 1) / pageBytes * pageBytes;
  int64_t alignment = bytes < hugeBytes ? pageBytes : hugeBytes;
  auto beginOf = [&](const auto &entry) {
    return (entry.first + alignment - 1) / alignment * alignment;
  };
  auto extent = std::find_if(extents.begin(), extents.end(), [&](auto &entry) {
    return entry.second.isFree &&
           entry.second.bytes >= beginOf(entry) - entry.first + bytes;
  });
  if (extent == extents.end())
    return nullptr;
  auto [offset, whole] = *extent;
  int64_t begin = beginOf(*extent), rest = offset + whole.bytes - begin - bytes;
  // What allocates comes before what changes.
  decltype(extents) fresh = {{begin, {bytes, /*isFree=*/false, true}}};
  if (rest)
    fresh[begin + bytes] = {rest, /*isFree=*/true, whole.isBacked};
  if (!whole.isBacked && !back(begin, begin + bytes))
    return nullptr;
  if (begin == offset)
    extents.erase(extent);
  else
    extent->second.bytes = begin - offset;
  extents.merge(fresh);
  return static_cast<char *>(base) + begin;
}

bool Segment::release(void *data) {
  auto extent = extents.find(offsetOf(data));
  if (extent == extents.end())
    return false;
  // Allocates nothing, since destructors call it.
  extent->second.isFree = true;
  auto join = [&](auto one, auto next) {
    if (next == extents.end() || !one->second.isFree || !next->second.isFree)
      return;
    one->second.bytes += next->second.bytes;
    one->second.isBacked &= next->second.isBacked;
    extents.erase(next);
  };
  join(extent, std::next(extent));
  join(std::prev(extent), extent);
  return true;
}

int64_t Segment::offsetOf(const void *data) const {
  auto offset =
      reinterpret_cast<uintptr_t>(data) - reinterpret_cast<uintptr_t>(base);
  return offset < uintptr_t(size) ? int64_t(offset) : -1;
}

void Segment::revoke() {
  headOf(base)->isRevoked.store(1, std::memory_order_relaxed);
  // A rank that reads something written later also reads the flag.
  std::atomic_thread_fence(std::memory_order_release);
}
