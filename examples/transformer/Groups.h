//===- Groups.h - How ranks of this program exchange data -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_GROUPS_H
#define ZERO_EXAMPLES_TRANSFORMER_GROUPS_H

#include "zero_rt/tcp.h"

#include <vector>

namespace transformer {

/// The process group of ranks that are threads: one that they share, or, over
/// TCP, one end for each of them, as if each were a process.
class Groups {
public:
  Groups(int64_t ranks, bool overTcp);
  ~Groups();
  Groups(const Groups &) = delete;
  Groups &operator=(const Groups &) = delete;

  /// What |rank| is in. Over TCP it waits for all ranks.
  zero_rt_group *connect(int rank);
  /// |rank| has destroyed its runtime.
  void leave(int rank);

private:
  zero_rt_tcp_options address = {};  // no ranks: threads share a group
  std::vector<zero_rt_group *> ends; // by rank; one of threads
};

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_GROUPS_H
