//===- Launch.cpp - A rank that is a process ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Launch.h"

#include "examples/transformer/Check.h"
#include "zero_rt/tcp.h"

namespace transformer {

Launch readLaunch() {
  zero_rt_tcp_options options = {};
  options.struct_size = sizeof(options);
  check(zero_rt_tcp_environment(&options), "zero_rt_tcp_environment", 0);
  auto connect = [options] {
    zero_rt_group *group = nullptr;
    check(zero_rt_tcp_group_create(&options, &group),
          "zero_rt_tcp_group_create", options.rank);
    return group;
  };
  return {options.rank, options.ranks, options.local_rank, connect};
}

} // namespace transformer
