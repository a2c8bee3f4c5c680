//===- Machine.h - How fast a machine moves bytes ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_EXPLAIN_MACHINE_H
#define ZERO_TOOLS_ZERO_EXPLAIN_MACHINE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LogicalResult.h"

#include <optional>
#include <string>
#include <vector>

namespace zero {

/// What connects |ranks| adjacent ranks, from a multiple of |ranks| on.
struct Link {
  int64_t ranks = 0;
  double latency = 0;   // seconds for each message
  double bandwidth = 0; // bytes a second that a rank sends
};

/// Bytes a second are those of one rank.
struct Machine {
  std::string name;
  int64_t deviceBytes = 0;
  double deviceBandwidth = 0; // of its memory
  double hostBandwidth = 0;   // its share of the memory of the host
  double copyBandwidth = 0;   // between both
  std::vector<Link> links;    // by number of ranks

  /// Seconds of a ring in which each rank sends |bytes| in |messages| messages.
  /// Each of the rings among |among| ranks is within |span| adjacent ones, from
  /// a multiple of |span| on. The link is the first one that connects the ranks
  /// of all these rings, or the last one. A ring that crosses the border of two
  /// nodes is as slow as the link between them, and others wait for it.
  double getSeconds(int64_t span, int64_t among, int64_t messages,
                    int64_t bytes) const;
};

/// The messages of a collective in a ring: one to each other rank, or two in an
/// all-reduce. |op| is its name, such as "all_reduce_scalars".
int64_t getMessages(llvm::StringRef op, int64_t ranks);

/// Reads a machine from JSON. |file| is for the message of an error.
llvm::LogicalResult readMachine(llvm::StringRef text, llvm::StringRef file,
                                Machine &machine, std::string &message);

/// Where the time of a step goes that is not forward and backward, in seconds
/// of one rank, if nothing overlaps. With pipeline stages: of the |stage|.
struct Times {
  double sendInBackward = 0;
  double sendAtApply = 0;
  double copy = 0;
  double deviceKernels = 0, hostKernels = 0;

  double getTotal() const {
    return sendInBackward + sendAtApply + copy + deviceKernels + hostKernels;
  }
  llvm::json::Object toJson() const;
};

/// The times of |stage|, which is a plan or one pipeline stage of it, with one
/// backward pass.
Times getTimes(const llvm::json::Object &stage, const Machine &machine);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_EXPLAIN_MACHINE_H
