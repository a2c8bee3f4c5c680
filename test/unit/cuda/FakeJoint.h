//===- FakeJoint.h - What ranks do together ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_CUDA_FAKEJOINT_H
#define ZERO_TEST_UNIT_CUDA_FAKEJOINT_H

#include "FakeGpu.h"

#include <optional>

namespace zero::test::fake {

// As nccl.h numbers them.
constexpr int kInt8 = 0;
constexpr int kFloat32 = 7;
constexpr int kFloat64 = 8;

inline size_t sizeOf(int type) {
  return type == kFloat64 ? 8 : type == kFloat32 ? 4 : 1;
}

/// What one rank brings to a collective. Addresses are those of the GPU.
struct Part {
  std::string what; // the same on all ranks
  uint64_t src = 0, dst = 0;
  size_t count = 0;
  int type = kInt8;
  struct Message {
    int peer;
    uint64_t address;
    size_t bytes;
  };
  std::vector<Message> sent, received; // of a group
  bool hasArrived = false;
};

/// One collective of all ranks.
struct Joint {
  explicit Joint(size_t ranks) : parts(ranks), passed(ranks) {}
  std::vector<std::optional<Part>> parts;
  std::vector<Event> passed; // by rank
};

/// Whether all ranks, which have come, came for the same.
bool agree(const Joint &joint);

/// Does it. Sums are taken in some order.
void perform(Joint &joint);

} // namespace zero::test::fake

#endif // ZERO_TEST_UNIT_CUDA_FAKEJOINT_H
