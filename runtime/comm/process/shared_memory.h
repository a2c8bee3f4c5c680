//===- shared_memory.h - Memory of ranks on the same machine ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank announces its segment. A rank on the same machine opens the file of
// the segment by way of /proc, and maps it for reading. This needs the same
// user and the same namespace of processes. Whatever fails here is no error:
// the two ranks then exchange messages. Each direction is decided on its own.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_SHARED_MEMORY_H
#define ZERO_RT_COMM_PROCESS_SHARED_MEMORY_H

#include "comm/process/segment.h"

#include <vector>

namespace zero_rt {

/// Where the segment of a rank is.
struct Announcement {
  char machine[40] = {}; // the id of the boot
  int64_t bytes = 0;     // 0: there is no segment
  int32_t process = 0;
  int32_t descriptor = -1;
  std::array<uint64_t, 4> nonce = {};
};

class SharedMemory {
public:
  /// |segment| may be null.
  SharedMemory(int32_t ranks, std::unique_ptr<Segment> segment);
  ~SharedMemory();
  SharedMemory(const SharedMemory &) = delete;
  SharedMemory &operator=(const SharedMemory &) = delete;

  Segment *own() const { return segment.get(); }
  Announcement announce() const;
  /// Maps the segment of |rank| in place of an earlier one, and reads it from
  /// then on. Returns false if that is not possible.
  bool attach(int32_t rank, const Announcement &announcement);
  bool reads(int32_t rank) const { return views[size_t(rank)].base != nullptr; }
  /// The number of ranks that this rank reads.
  int64_t count() const;

  /// Whether |rank| has attached the segment of this rank.
  void setReader(int32_t rank, bool isReader) {
    views[size_t(rank)].isReader = isReader;
  }
  bool isReadBy(int32_t rank) const { return views[size_t(rank)].isReader; }

  /// The address of |bytes| at |offset| of the segment of |rank|, which this
  /// rank reads; null if they are not in the segment.
  const void *find(int32_t rank, int64_t offset, int64_t bytes) const;
  /// Whether |rank| has revoked its segment. All earlier reads were of valid
  /// memory if not.
  bool isRevoked(int32_t rank) const;

private:
  struct View {
    void *base = nullptr;
    int64_t bytes = 0;
    std::array<uint64_t, 4> nonce = {};
    bool isReader = false;
  };
  void detach(View &view);
  std::unique_ptr<Segment> segment;
  std::vector<View> views; // by rank
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_SHARED_MEMORY_H
