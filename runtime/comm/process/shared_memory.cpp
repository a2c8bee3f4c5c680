//===- shared_memory.cpp - Memory of ranks on the same machine ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/shared_memory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace zero_rt;

namespace {

struct File {
  explicit File(const char *path)
      : descriptor(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
  }
  ~File() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  const int descriptor;
};

} // namespace

SharedMemory::SharedMemory(int32_t ranks, std::unique_ptr<Segment> segment)
    : segment(std::move(segment)), views(size_t(ranks)) {}

SharedMemory::~SharedMemory() {
  for (View &view : views)
    detach(view);
}

void SharedMemory::detach(View &view) {
  if (view.base)
    ::munmap(view.base, size_t(view.bytes));
  view.base = nullptr;
}

Announcement SharedMemory::announce() const {
  Announcement mine;
  File id("/proc/sys/kernel/random/boot_id");
  if (!segment || id.descriptor < 0 ||
      ::read(id.descriptor, mine.machine, sizeof(mine.machine) - 1) <= 0)
    return {};
  mine.bytes = segment->bytes();
  mine.process = int32_t(::getpid());
  mine.descriptor = segment->descriptor();
  mine.nonce = segment->head().nonce;
  return mine;
}

bool SharedMemory::attach(int32_t rank, const Announcement &announcement) {
  View &view = views[size_t(rank)];
  if (view.base && view.nonce == announcement.nonce)
    return true;
  detach(view);
  Announcement mine = announce();
  if (mine.bytes == 0 || announcement.bytes < Segment::pageBytes ||
      std::memcmp(mine.machine, announcement.machine, sizeof(mine.machine)))
    return false;
  File file(("/proc/" + std::to_string(announcement.process) + "/fd/" +
             std::to_string(announcement.descriptor))
                .c_str());
  // A file that could become smaller could end this process by a signal.
  struct stat status = {};
  if (file.descriptor < 0 || ::fstat(file.descriptor, &status) ||
      status.st_size != announcement.bytes)
    return false;
  int seals = ::fcntl(file.descriptor, F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK))
    return false;
  void *mapped = Segment::map(file.descriptor, announcement.bytes, PROT_READ);
  if (!mapped)
    return false;
  if (Segment::headOf(mapped)->nonce != announcement.nonce) {
    ::munmap(mapped, size_t(announcement.bytes));
    return false;
  }
  view.base = mapped;
  view.bytes = announcement.bytes;
  view.nonce = announcement.nonce;
  return true;
}

int64_t SharedMemory::count() const {
  return std::count_if(views.begin(), views.end(),
                       [](const View &view) { return view.base != nullptr; });
}

const void *SharedMemory::find(int32_t rank, int64_t offset,
                               int64_t bytes) const {
  const View &view = views[size_t(rank)];
  // A hostile rank must not make this rank read what is not aligned either.
  if (offset < 0 || offset % Segment::pageBytes || bytes < 0 ||
      bytes > view.bytes || offset > view.bytes - bytes)
    return nullptr;
  return static_cast<const char *>(view.base) + offset;
}

bool SharedMemory::isRevoked(int32_t rank) const {
  std::atomic_thread_fence(std::memory_order_acquire);
  return Segment::headOf(views[size_t(rank)].base)
             ->isRevoked.load(std::memory_order_relaxed) != 0;
}
