//===- FakeJoint.cpp - What ranks do together -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeJoint.h"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace zero::test;
using namespace zero::test::fake;

namespace {

/// What is at |address|; where that is not there, the test fails.
std::vector<char> read(uint64_t address, size_t bytes) {
  std::vector<char> data(bytes);
  if (const void *from = gpu().toNear(address, bytes, "NCCL"))
    std::memcpy(data.data(), from, bytes);
  return data;
}

void write(uint64_t address, const char *data, size_t bytes) {
  if (void *to = gpu().toNear(address, bytes, "NCCL"))
    std::memcpy(to, data, bytes);
}

/// Adds |addends|, arrays of T, to |total|.
template <typename T>
void add(const std::vector<char> &addends, std::vector<char> &total) {
  auto *from = reinterpret_cast<const T *>(addends.data());
  auto *to = reinterpret_cast<T *>(total.data());
  for (size_t i = 0; i < total.size() / sizeof(T); ++i)
    to[i] += from[i];
}

void reduce(Joint &joint, bool scatters) {
  size_t ranks = joint.parts.size();
  const Part &first = *joint.parts[0];
  size_t size = sizeOf(first.type);
  size_t all = scatters ? first.count * ranks : first.count;
  std::vector<size_t> order(ranks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), gpu().random);
  std::vector<char> total(all * size); // zeros
  for (size_t r : order) {
    std::vector<char> addends = read(joint.parts[r]->src, all * size);
    if (first.type == kFloat64)
      add<double>(addends, total);
    else
      add<float>(addends, total);
  }
  for (size_t r = 0; r < ranks; ++r) {
    const Part &part = *joint.parts[r];
    write(part.dst, total.data() + (scatters ? r * part.count * size : 0),
          part.count * size);
  }
}

void gather(Joint &joint) {
  std::vector<std::vector<char>> all;
  for (auto &part : joint.parts)
    all.push_back(read(part->src, part->count));
  for (auto &part : joint.parts)
    for (size_t r = 0; r < all.size(); ++r)
      write(part->dst + r * part->count, all[r].data(), part->count);
}

void deliver(Joint &joint) {
  std::map<std::pair<int, int>, std::vector<char>> under; // way, by ends
  for (size_t r = 0; r < joint.parts.size(); ++r)
    for (const Part::Message &message : joint.parts[r]->sent)
      under[{int(r), message.peer}] = read(message.address, message.bytes);
  for (size_t r = 0; r < joint.parts.size(); ++r)
    for (const Part::Message &message : joint.parts[r]->received) {
      const std::vector<char> &data = under[{message.peer, int(r)}];
      write(message.address, data.data(), std::min(data.size(), message.bytes));
    }
}

} // namespace

bool fake::agree(const Joint &joint) {
  const Part &first = *joint.parts[0];
  for (size_t r = 0; r < joint.parts.size(); ++r) {
    const Part &part = *joint.parts[r];
    if (part.what != first.what || part.count != first.count ||
        part.type != first.type)
      return false;
    for (const Part::Message &message : part.sent) {
      const auto &theirs = joint.parts[size_t(message.peer)]->received;
      bool fits = std::any_of(theirs.begin(), theirs.end(), [&](auto &other) {
        return other.peer == int(r) && other.bytes == message.bytes;
      });
      if (!fits)
        return false;
    }
  }
  return true;
}

void fake::perform(Joint &joint) {
  const std::string &what = joint.parts[0]->what;
  if (what == "AllReduce" || what == "ReduceScatter")
    reduce(joint, what == "ReduceScatter");
  else if (what == "AllGather")
    gather(joint);
  else
    deliver(joint);
  for (Event &event : joint.passed)
    event.passed.insert(1);
}
