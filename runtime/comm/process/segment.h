//===- segment.h - Memory that other processes can map ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The buffers of collectives of one rank are in one file in memory, which the
// ranks on the same machine map. The file is as large as the memory of the
// machine, and only allocated pages take memory. Nobody can make it smaller, so
// a read of a mapped page never fails.
//
// A child of a fork has the memory of its own rank as a private copy, as it has
// all other memory, and that of other ranks not at all.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_SEGMENT_H
#define ZERO_RT_COMM_PROCESS_SEGMENT_H

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

namespace zero_rt {

/// The first bytes of a segment.
struct SegmentHead {
  /// Random, so that a file of another process is not taken for the segment.
  std::array<uint64_t, 4> nonce;
  /// Not 0: the owner has left a collective while other ranks may read.
  std::atomic<uint32_t> isRevoked;
};

class Segment {
public:
  /// The size of blocks is a multiple of this.
  static constexpr int64_t pageBytes = 4096;
  /// Blocks of at least this size are in large pages if the system has some.
  static constexpr int64_t hugeBytes = int64_t(1) << 21;

  /// Null if the system does not provide such memory.
  static std::unique_ptr<Segment> create();
  ~Segment();
  Segment(const Segment &) = delete;
  Segment &operator=(const Segment &) = delete;

  /// Memory for |bytes|, which must be positive; null if there is none.
  /// Released memory stays with the segment for later blocks.
  void *allocate(int64_t bytes);
  /// Returns false if |data| is no block.
  bool release(void *data);
  /// The place of |data| in the file; -1 if |data| is not in the segment.
  int64_t offsetOf(const void *data) const;

  /// Declares that blocks may change while other ranks read them.
  void revoke();

  int32_t descriptor() const { return file; }
  int64_t bytes() const { return size; }
  const SegmentHead &head() const { return *headOf(base); }

  /// Maps |bytes| of |file| where large pages can be; null if that fails.
  static void *map(int file, int64_t bytes, int protection);
  static SegmentHead *headOf(void *base) {
    return static_cast<SegmentHead *>(base);
  }

private:
  struct Extent {
    int64_t bytes;
    bool isFree;
    bool isBacked; // has pages
  };

  Segment() = default;
  bool open();
  /// Gives a child of a fork a copy, whose pages are made when it writes.
  void copyInChild();
  static bool watchForks();
  bool back(int64_t begin, int64_t end);

  int file = -1;
  void *base = nullptr;
  int64_t size = 0;
  std::map<int64_t, Extent> extents; // by offset, without gaps
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_SEGMENT_H
