//===- Groups.h - How ranks of a run exchange data --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_GROUPS_H
#define ZERO_TOOLS_ZERO_RUN_GROUPS_H

#include "zero_rt/abi.h"

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace zero {

/// How ranks that are threads of this process exchange data: as threads do, or
/// as processes of one machine, or of several machines.
enum class GroupKind { threads, shared, tcp };

/// Makes a group of |ranks|: one that all share, or the end of each rank by
/// rank. The caller destroys them. Empty on an error, and |message| says what
/// is wrong.
std::vector<zero_rt_group *> createGroups(GroupKind kind, int64_t ranks,
                                          std::string &message);

/// Ranks that are processes. Each process runs one rank, and makes the same
/// calls of its engine as the others, which then gives each of them what all
/// ranks hold.
class Processes {
public:
  virtual ~Processes() = default;
  virtual int64_t getRank() const = 0; // of this process
  virtual int64_t getNumRanks() const = 0;
  /// The end of this rank; the caller destroys it. Null on an error, and
  /// zero_rt_message says what is wrong.
  virtual zero_rt_group *createGroup() const = 0;
  /// Gives all processes the |bytes| at |data| of |root|.
  virtual void broadcastBytes(int64_t root, void *data, size_t bytes) const = 0;

  /// Gives all processes the |values| of |root|.
  template <typename T>
  void broadcast(int64_t root, std::vector<T> &values) const {
    static_assert(std::is_trivially_copyable_v<T>);
    uint64_t count = values.size();
    broadcastBytes(root, &count, sizeof(count));
    values.resize(count);
    if (count > 0)
      broadcastBytes(root, values.data(), count * sizeof(T));
  }
};

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_GROUPS_H
