//===- ZeroOps.td - All ops of the zero dialect ------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "dialect/zero/ActivationOps.td"
include "dialect/zero/LogicalOps.td"
include "dialect/zero/ShardedOps.td"
include "dialect/zero/PlacedOps.td"
