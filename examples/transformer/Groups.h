//===- Groups.h - How ranks of this program exchange data -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_GROUPS_H
#define ZERO_EXAMPLES_TRANSFORMER_GROUPS_H

#include "examples/transformer/Launch.h"
#include "zero_rt/tcp.h"

#include <vector>

namespace transformer {

/// The process group of ranks that are threads: one that they share, or, over
/// TCP, one end for each of them, as if each were a process. Or the end of the
/// rank that this process is.
class Groups {
public:
  /// |launch| is null where ranks are threads.
  Groups(int64_t ranks, bool overTcp, const Launch *launch);
  ~Groups();
  Groups(const Groups &) = delete;
  Groups &operator=(const Groups &) = delete;

  /// What |rank| is in. Over TCP it waits for all ranks.
  zero_rt_group *connect(int rank);
  /// |rank| has destroyed its runtime.
  void leave(int rank);

private:
  bool isShared() const { return !launch && address.ranks == 0; }

  const Launch *launch;
  zero_rt_tcp_options address = {};  // no ranks: not used
  std::vector<zero_rt_group *> ends; // by rank; one of threads
};

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_GROUPS_H
